(* The paper's Theorem, corrected and as an equivalence: one window serves all rows and inputs if and only if the sum of
   the weights converges.

   "Windowed": whatever bound M the content logits and V the values have, for every eps there is one j0 such that
   attention with a window of j >= j0 tokens differs from attention over the whole row by less than eps, for every
   length of the row, every logits and every values within these bounds. j0 comes before the row: the quantifiers of
   erratum E16. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Rows Sharp.
Open Scope R_scope.

Definition windowed (E : NormedModule R_AbsRing) (b : nat -> R) : Prop :=
  forall M V eps, 0 <= M -> 0 <= V -> 0 < eps ->
  exists j0, forall (j n : nat) (s : nat -> R) (v : nat -> E), (1 <= j)%nat -> (j0 <= j)%nat -> (j <= n)%nat ->
    (forall t, Rabs (s t) <= M) -> (forall t, norm (v t) <= V) ->
    norm (minus (output (weights b s) v n) (output (weights b s) v j)) < eps.

Section Theorem1.
Variables (E : NormedModule R_AbsRing) (b : nat -> R).
Hypotheses (Hb : forall t, 0 <= b t) (H0 : 0 < b 0%nat).

(* Theorems 1 and 2 of the paper: a finite sum suffices *)
Theorem convergent_is_windowed : ex_series b -> windowed E b.
Proof.
  intros Hs M V eps HM HV He.
  pose proof (exp_pos (2 * M)) as PM.
  assert (Q : 0 < 2 * (V + 1) * exp (2 * M) / b 0%nat) by (apply Rdiv_lt_0_compat; [nra|exact H0]).
  set (q := 2 * (V + 1) * exp (2 * M) / b 0%nat) in *.
  pose proof (is_lim_tail b Hs) as L. apply is_lim_seq_spec in L.
  assert (Pe : 0 < eps / q) by now apply Rdiv_lt_0_compat.
  destruct (L (mkposreal _ Pe)) as [j0 Hj0]. exists j0. intros j n s v H1 Hj Hjn Hsb Hv.
  pose proof (weights_nonneg b s Hb) as Hc. pose proof (weights_pos b s 0 H0) as Hc0.
  apply Rle_lt_trans with (1 := truncation (weights b s) v V j n H1 Hjn Hc Hc0 Hv).
  pose proof (share_le_tail b s M j n H1 Hjn Hb H0 Hsb) as S.
  pose proof (outside_share_bounds (weights b s) j n H1 Hjn Hc Hc0) as [S0 _].
  specialize (Hj0 j Hj). simpl in Hj0. rewrite Rminus_0_r in Hj0.
  rewrite Rabs_right in Hj0 by (apply Rle_ge; now apply tail_nonneg).
  assert (T : head b n - head b j <= tail b j).
  { pose proof (head_le_total b n Hb Hs). rewrite (head_tail b j Hs) in H. lra. }
  apply Rle_lt_trans with (q * (head b n - head b j)).
  - apply Rle_trans with (2 * (V + 1) * outside_share (weights b s) j n); [nra|].
    apply Rle_trans with (2 * (V + 1) * (exp (2 * M) * (head b n - head b j) / b 0%nat)).
    + apply Rmult_le_compat_l; [lra|exact S].
    + right. unfold q. field. lra.
  - apply Rle_lt_trans with (q * tail b j); [apply Rmult_le_compat_l; lra|].
    apply (Rmult_lt_compat_l q) in Hj0; [|exact Q].
    replace (q * (eps / q)) with eps in Hj0 by (field; lra). exact Hj0.
Qed.

(* The converse, which the paper leaves to experiments (erratum E19); u is any value that is not zero *)
Theorem windowed_is_convergent (u : E) : 0 < norm u -> windowed E b -> ex_series b.
Proof.
  intros Hu W. destruct (Classical_Prop.classic (ex_series b)) as [H|H]; [exact H|exfalso].
  destruct (W 0 (norm u) (norm u) (Rle_refl 0) ltac:(lra) Hu) as [j0 Hj].
  set (j := S j0). destruct (head_unbounded b Hb H (2 * head b j)) as [n Hn].
  assert (Pj : 0 < head b j) by (apply head_pos; [exact Hb|exact H0|unfold j; lia]).
  assert (Hjn : (j <= n)%nat).
  { destruct (Nat.le_gt_cases j n) as [h|h]; [exact h|exfalso].
    pose proof (head_mono b n j Hb ltac:(lia)). lra. }
  specialize (Hj j n (fun _ => 0) (fun t => if Nat.ltb t j then u else opp u)
                 ltac:(unfold j; lia) ltac:(unfold j; lia) Hjn).
  assert (A : norm (opp u) = norm u) by apply norm_opp.
  specialize (Hj ltac:(intros; cbv beta; rewrite Rabs_R0; lra)
                 ltac:(intros t; simpl; destruct (Nat.ltb t j); [lra|rewrite A; lra])).
  pose proof (weights_nonneg b (fun _ => 0) Hb) as Hc. pose proof (weights_pos b (fun _ => 0) 0 H0) as Hc0.
  rewrite (truncation_attained (weights b (fun _ => 0)) u j n ltac:(unfold j; lia) Hjn Hc Hc0) in Hj.
  assert (Hw : forall i, head (weights b (fun _ => 0)) i = head b i).
  { intros i. apply head_ext. intros t _. unfold weights. rewrite exp_0. ring. }
  unfold outside_share in Hj. rewrite !Hw in Hj.
  assert (Half : / 2 < 1 - head b j / head b n).
  { assert (head b j / head b n < / 2); [|lra].
    apply (Rmult_lt_reg_r (head b n)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  nra.
Qed.

Theorem windowed_iff_convergent (u : E) : 0 < norm u -> (windowed E b <-> ex_series b).
Proof. intros Hu. split; [now apply (windowed_is_convergent u)|exact convergent_is_windowed]. Qed.
End Theorem1.

(* numbers as values are enough to see it *)
Corollary windowed_iff_convergent_R b : (forall t, 0 <= b t) -> 0 < b 0%nat ->
  (windowed R_NormedModule b <-> ex_series b).
Proof.
  intros Hb H0. apply (windowed_iff_convergent R_NormedModule b Hb H0 1).
  change (norm (1 : R_NormedModule)) with (Rabs 1). rewrite Rabs_R1. lra.
Qed.

(* ---------------------------------------------------------------------- logits as the paper has them (erratum E17) *)
(* vectors of d numbers *)
Definition dot (d : nat) (x y : nat -> R) : R := head (fun i => x i * y i) d.
Definition length2 (d : nat) (x : nat -> R) : R := sqrt (dot d x x).

Lemma dot_nonneg d x : 0 <= dot d x x.
Proof. apply head_nonneg. intros t. apply Rle_0_sqr. Qed.

Lemma cauchy_schwarz d x y : Rabs (dot d x y) <= length2 d x * length2 d y.
Proof.
  assert (S : dot d x y * dot d x y <= dot d x x * dot d y y).
  { pose proof (dot_nonneg d x) as Px. pose proof (dot_nonneg d y) as Py.
    assert (Q : forall k, 0 <= dot d x x - 2 * k * dot d x y + k * k * dot d y y).
    { intros k. apply Rle_trans with (head (fun i => (x i - k * y i) * (x i - k * y i)) d).
      - apply head_nonneg. intros t. apply Rle_0_sqr.
      - right. unfold dot. clear. induction d as [|d IH]; simpl; [ring|]. rewrite IH. ring. }
    destruct (Req_dec (dot d y y) 0) as [Z|Z].
    - destruct (Req_dec (dot d x y) 0) as [->|N]; [rewrite Z; lra|exfalso].
      specialize (Q ((dot d x x + 1) / dot d x y)). rewrite Z in Q.
      replace (2 * ((dot d x x + 1) / dot d x y) * dot d x y) with (2 * (dot d x x + 1)) in Q by (field; exact N). lra.
    - specialize (Q (dot d x y / dot d y y)).
      replace (dot d x x - 2 * (dot d x y / dot d y y) * dot d x y
               + dot d x y / dot d y y * (dot d x y / dot d y y) * dot d y y)
        with ((dot d x x * dot d y y - dot d x y * dot d x y) / dot d y y) in Q by (field; exact Z).
      assert (0 < dot d y y) by lra. apply (Rmult_le_compat_r (dot d y y)) in Q; [|lra].
      unfold Rdiv in Q. rewrite Rmult_assoc, Rinv_l in Q by lra. lra. }
  unfold length2. rewrite <- sqrt_mult by apply dot_nonneg. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt. exact S.
Qed.

(* queries and keys of length at most l: the logits are at most l^2 / sqrt d, not l^2 *)
Theorem logit_bound d l q k : (1 <= d)%nat -> length2 d q <= l -> length2 d k <= l ->
  Rabs (dot d q k / sqrt (INR d)) <= l * l / sqrt (INR d).
Proof.
  intros Hd Hq Hk. assert (Pd : 0 < sqrt (INR d)) by (apply sqrt_lt_R0, lt_0_INR; lia).
  unfold Rdiv. rewrite Rabs_mult, (Rabs_right (/ _)) by (apply Rle_ge; left; now apply Rinv_0_lt_compat).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
  apply Rle_trans with (1 := cauchy_schwarz d q k).
  apply Rmult_le_compat; try apply sqrt_pos; assumption.
Qed.

(* The Theorem in the paper's words: queries, keys and values of length at most l. Row i sees the keys k 0 .. k i; the
   key at distance t is k (i - t). *)
Theorem paper_theorem (E : NormedModule R_AbsRing) (b : nat -> R) (d : nat) (l : R) :
  (forall t, 0 <= b t) -> 0 < b 0%nat -> (1 <= d)%nat -> 0 <= l -> ex_series b ->
  forall eps, 0 < eps -> exists j0, forall (i j : nat) (q : nat -> R) (k : nat -> nat -> R) (v : nat -> E),
    (1 <= j)%nat -> (j0 <= j)%nat -> (j <= S i)%nat ->
    length2 d q <= l -> (forall s, length2 d (k s) <= l) -> (forall s, norm (v s) <= l) ->
    let c := weights b (fun t => dot d q (k (i - t)%nat) / sqrt (INR d)) in
    let w := fun t => v (i - t)%nat in
    norm (minus (output c w (S i)) (output c w j)) < eps.
Proof.
  intros Hb H0 Hd Hl Hs eps He.
  assert (HM : 0 <= l * l / sqrt (INR d)).
  { apply Rmult_le_pos; [nra|]. left. apply Rinv_0_lt_compat, sqrt_lt_R0, lt_0_INR. lia. }
  destruct (convergent_is_windowed E b Hb H0 Hs (l * l / sqrt (INR d)) l eps HM Hl He) as [j0 H].
  exists j0. intros i j q k v H1 Hj Hi Hq Hk Hv c w. apply H; try assumption.
  - intros t. now apply logit_bound.
  - intros t. apply Hv.
Qed.
