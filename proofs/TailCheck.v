(* A receptive field from bounds on the tail: a checker that works for every series whose terms and tails can be enclosed.

   The first N terms are added up as intervals; the rest is bounded. The receptive field n is then settled by two
   comparisons: of the tails at n and n - 1 if n > N, of the heads otherwise. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Numbers Monomials Fields.
Open Scope R_scope.
Open Scope lazy_bool_scope. (* a &&& b computes b only if it must *)

Local Opaque within iZ iadd isub imul iQ.

Section Check.
Variables (prec : I.F.precision) (term : nat -> I.type) (lo hi : Z -> I.type) (first : Z).

(* the head, two sums in one walk: of the first n terms and of the first N *)
Fixpoint ihead (n : nat) : I.type := match n with O => iZ prec 0 | S m => iadd prec (ihead m) (term m) end.

Definition check_trf (eps : Q) (n : Z) (N : nat) : bool :=
  let j := Z.of_nat N in
  let B := ihead N in
  let e := iQ prec eps in
  let least := iadd prec B (lo j) in
  let most := iadd prec B (hi j) in
  ((first <=? j) && (1 <=? n))%Z &&&
  if (n <=? j)%Z then
    let keep := isub prec (iZ prec 1) e in
    let before := ihead (Z.to_nat (n - 1)) in
    let here := iadd prec before (term (Z.to_nat (n - 1))) in
    ipos keep &&& ineg_strict (isub prec (imul prec keep most) here) &&& inonneg (isub prec (imul prec keep least) before)
  else
    ipos e &&& ineg_strict (isub prec (hi n) (imul prec e least)) &&&
    inonneg (isub prec (lo (n - 1)%Z) (imul prec e most)).

Variable b : nat -> R.
Hypothesis Hb : forall t, 0 <= b t.
Hypothesis Hs : ex_series b.
Hypothesis Hterm : forall t, within (term t) (b t).
Hypothesis Hlo : forall j, (first <= Z.of_nat j)%Z -> exists v, within (lo (Z.of_nat j)) v /\ v <= tail b j.
Hypothesis Hhi : forall j, (first <= Z.of_nat j)%Z -> exists v, within (hi (Z.of_nat j)) v /\ tail b j <= v.

Lemma ihead_correct n : within (ihead n) (head b n).
Proof. induction n as [|n IH]; cbn [ihead head]; [apply iZ_correct|]. now apply iadd_correct. Qed.

Theorem check_trf_correct eps n N : check_trf eps n N = true -> is_trf b (Q2R eps) (Z.to_nat n).
Proof.
  unfold check_trf. intros H. apply Bool.andb_true_iff in H. destruct H as [H1 H].
  apply Bool.andb_true_iff in H1. destruct H1 as [Hf Hn]. apply Z.leb_le in Hf, Hn.
  destruct (Hlo N Hf) as [l [Wl Ll]]. destruct (Hhi N Hf) as [h [Wh Lh]].
  pose proof (head_tail b N Hs) as T. pose proof (ihead_correct N) as WB. pose proof (iQ_correct prec eps) as We.
  set (e := Q2R eps) in *.
  assert (Wleast : within (iadd prec (ihead N) (lo (Z.of_nat N))) (head b N + l)) by now apply iadd_correct.
  assert (Wmost : within (iadd prec (ihead N) (hi (Z.of_nat N))) (head b N + h)) by now apply iadd_correct.
  replace (Z.to_nat n) with (S (Z.to_nat (n - 1))) by lia. set (j := Z.to_nat (n - 1)) in *.
  destruct (n <=? Z.of_nat N)%Z eqn:C.
  - apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H2 H4].
    assert (Wk : within (isub prec (iZ prec 1) (iQ prec eps)) (1 - e)) by (apply isub_correct; [apply iZ_correct|exact We]).
    pose proof (ipos_correct _ _ H2 Wk) as Pk.
    pose proof (ihead_correct j) as Wj.
    assert (Q1 : (1 - e) * (head b N + h) - (head b j + b j) < 0).
    { apply (ineg_strict_correct _ _ H4). apply isub_correct; [now apply imul_correct|]. now apply iadd_correct. }
    assert (Q2 : 0 <= (1 - e) * (head b N + l) - head b j).
    { apply (inonneg_correct _ _ H3). apply isub_correct; [now apply imul_correct|exact Wj]. }
    pose proof (head_tail b j Hs) as Tj. pose proof (head_tail b (S j) Hs) as TS. cbn [head] in TS.
    apply trf_intro; try assumption; nra.
  - apply Z.leb_gt in C. apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H2 H4].
    pose proof (ipos_correct _ _ H2 We) as Pe.
    assert (EN : Z.of_nat (S j) = n) by (unfold j; lia). assert (EJ : Z.of_nat j = (n - 1)%Z) by (unfold j; lia).
    destruct (Hhi (S j)) as [u [Wu Lu]]; [lia|]. destruct (Hlo j) as [w [Ww Lw]]; [lia|].
    rewrite EN in Wu. rewrite EJ in Ww.
    assert (Q1 : u - e * (head b N + l) < 0).
    { apply (ineg_strict_correct _ _ H4). apply isub_correct; [exact Wu|now apply imul_correct]. }
    assert (Q2 : 0 <= w - e * (head b N + h)).
    { apply (inonneg_correct _ _ H3). apply isub_correct; [exact Ww|now apply imul_correct]. }
    apply trf_intro; try assumption; nra.
Qed.
End Check.
