(* Monomials of the logarithmic scale on a half line, and where they fall.

   A monomial is a list of rational exponents [a0; a1; a2; ...] and stands for
       exp(x)^a0 * x^a1 * (ln x)^a2 * (ln ln x)^a3 * ...  =  exp (a0 * x + a1 * ln x + a2 * ln ln x + ...).
   On x >= X, all that is known of X is a list K of intervals that hold X, ln X, ln ln X, ... *)
From Coq Require Import Reals ZArith QArith Qreals List Psatz Lia.
From Farfield Require Import Logarithms Ladder Numbers.
Import ListNotations.
Open Scope R_scope.
Open Scope lazy_bool_scope. (* a &&& b computes b only if it must *)

Definition mono := list Q.

(* the exponent of a monomial, the iterated logarithms counted from i *)
Fixpoint mdot (a : mono) (i : nat) (x : R) : R :=
  match a with [] => 0 | q :: a' => Q2R q * logs i x + mdot a' (S i) x end.

Definition meval (a : mono) (x : R) : R := exp (mdot a 0 x).

Lemma meval_pos a x : 0 < meval a x.
Proof. apply exp_pos. Qed.

Lemma Q2R_red q : Q2R (Qred q) = Q2R q.
Proof. apply Qeq_eqR, Qred_correct. Qed.

Lemma Q2R_zero_of q : Qeq_bool q 0 = true -> Q2R q = 0.
Proof. intros H. apply Qeq_bool_eq in H. apply Qeq_eqR in H. rewrite H. unfold Q2R. simpl. lra. Qed.

Fixpoint madd (a b : mono) : mono :=
  match a, b with
  | [], _ => b
  | _, [] => a
  | q :: a', r :: b' => Qred (q + r) :: madd a' b'
  end.

Lemma mdot_madd a b i x : mdot (madd a b) i x = mdot a i x + mdot b i x.
Proof.
  revert b i. induction a as [|q a IH]; intros [|r b] i; cbn [madd mdot]; try ring.
  rewrite IH, Q2R_red, Q2R_plus. ring.
Qed.

Lemma meval_madd a b x : meval (madd a b) x = meval a x * meval b x.
Proof. unfold meval. now rewrite mdot_madd, exp_plus. Qed.

Definition mscale (q : Q) (a : mono) : mono := map (fun r => Qred (q * r)) a.

Lemma mdot_mscale q a i x : mdot (mscale q a) i x = Q2R q * mdot a i x.
Proof.
  revert i. induction a as [|r a IH]; intros i; cbn [mscale map mdot]; [ring|].
  fold (mscale q a). rewrite IH, Q2R_red, Q2R_mult. ring.
Qed.

Definition mneg (a : mono) : mono := mscale (-1) a.

Lemma mdot_mneg a i x : mdot (mneg a) i x = - mdot a i x.
Proof. unfold mneg. rewrite mdot_mscale. unfold Q2R. simpl. lra. Qed.

Lemma meval_mneg a x : meval (mneg a) x = / meval a x.
Proof. unfold meval. now rewrite mdot_mneg, exp_Ropp. Qed.

Lemma meval_nil x : meval [] x = 1.
Proof. apply exp_0. Qed.

(* the sign of the first exponent that is not 0 orders the monomials *)
Fixpoint msign (a : mono) : comparison :=
  match a with [] => Eq | q :: a' => match Qcompare q 0 with Eq => msign a' | s => s end end.

Definition mcmp (a b : mono) : comparison := msign (madd a (mneg b)).

Definition mzero (a : mono) : bool := forallb (fun q => Qeq_bool q 0) a.

Lemma mdot_mzero a i x : mzero a = true -> mdot a i x = 0.
Proof.
  revert i. induction a as [|q a IH]; intros i H; cbn [mdot]; [reflexivity|].
  cbn [mzero forallb] in H. apply Bool.andb_true_iff in H. destruct H as [Hq H].
  rewrite (Q2R_zero_of q Hq), IH by exact H. ring.
Qed.

Lemma msign_eq_mzero a : msign a = Eq -> mzero a = true.
Proof.
  induction a as [|q a IH]; cbn [msign mzero forallb]; intros H; [reflexivity|].
  destruct (Qcompare q 0) eqn:C; try discriminate. apply Qeq_alt in C. rewrite (Qeq_eq_bool _ _ C). now apply IH.
Qed.

Lemma meval_mcmp a b x : mcmp a b = Eq -> meval a x = meval b x.
Proof.
  intros H. apply msign_eq_mzero in H. pose proof (mdot_mzero _ 0 x H) as E. rewrite mdot_madd, mdot_mneg in E.
  unfold meval. f_equal. lra.
Qed.

(* the monomial that is an iterated logarithm: logs i x has exponent 1 at place i + 1 *)
Definition munit (k : nat) : mono := repeat 0%Q k ++ [1%Q].

Lemma mdot_munit k i x : mdot (munit k) i x = logs (i + k) x.
Proof.
  revert i. induction k as [|k IH]; intros i; cbn [munit repeat app mdot].
  - rewrite Nat.add_0_r. unfold Q2R. simpl. lra.
  - fold (munit k). rewrite IH. replace (S i + k)%nat with (i + S k)%nat by lia. unfold Q2R. simpl. lra.
Qed.

Lemma meval_munit i x : 0 < logs i x -> meval (munit (S i)) x = logs i x.
Proof. intros H. unfold meval. rewrite mdot_munit. simpl. now apply exp_ln. Qed.

(* which iterated logarithm a monomial is *)
Fixpoint unit_index (a : mono) : option nat :=
  match a with
  | [] => None
  | q :: a' => if Qeq_bool q 1 then if mzero a' then Some 0%nat else None
               else if Qeq_bool q 0 then match unit_index a' with Some k => Some (S k) | None => None end else None
  end.

Lemma mdot_unit_index a k i x : unit_index a = Some k -> mdot a i x = logs (i + k) x.
Proof.
  revert k i. induction a as [|q a IH]; intros k i H; cbn [unit_index] in H; [discriminate|]. cbn [mdot].
  destruct (Qeq_bool q 1) eqn:E1.
  - destruct (mzero a) eqn:Z; [|discriminate]. injection H as <-. rewrite (mdot_mzero a (S i) x Z), Nat.add_0_r.
    apply Qeq_bool_eq in E1. apply Qeq_eqR in E1. rewrite E1. unfold Q2R. simpl. lra.
  - destruct (Qeq_bool q 0) eqn:E0; [|discriminate]. destruct (unit_index a) as [m|] eqn:U; [|discriminate].
    injection H as <-. rewrite (IH m (S i) eq_refl), (Q2R_zero_of q E0). replace (S i + m)%nat with (i + S m)%nat by lia.
    ring.
Qed.

(* -------------------------------------------------------------------------------------------- on the half line x >= X *)
Section HalfLine.
Variables (prec : I.F.precision) (K : list I.type).

Definition known (i : nat) : I.type := nth i K I.nai.
Definition kpos (i : nat) : bool := ipos (known i).

(* the number of logarithms that a monomial uses *)
Fixpoint levels (a : mono) : nat := match a with [] => 0 | q :: a' => if mzero (q :: a') then 0 else S (levels a') end.

(* all logarithms but the last must be known to be positive at X *)
Definition all_positive (n : nat) : bool := forallb kpos (seq 0 n).

(* how steep a monomial rises at most, compared with the logarithm at place i *)
Fixpoint slope (a : mono) (i : nat) : I.type :=
  match a with
  | [] => iZ prec 0
  | q :: a' =>
      let first := if Qle_bool q 0 then iZ prec 0 else iQ prec q in
      if mzero a' then first else iadd prec first (imul prec (iinv prec (known i)) (slope a' (S i)))
  end.

(* the first exponent outweighs all that follow *)
Fixpoint leads_down (a : mono) (i : nat) : bool :=
  match a with
  | [] => true
  | q :: a' =>
      if Qeq_bool q 0 then leads_down a' (S i)
      else if mzero a' then inonpos (iQ prec q)
      else inonpos (iadd prec (iQ prec q) (imul prec (iinv prec (known i)) (slope a' (S i))))
  end.

Definition falls (a : mono) : bool := all_positive (levels a - 1) &&& leads_down a 0.

(* the exponent of a monomial at X *)
Fixpoint kdot (a : mono) (i : nat) : I.type :=
  match a with
  | [] => iZ prec 0
  | q :: a' => if Qeq_bool q 0 then kdot a' (S i) else iadd prec (imul prec (iQ prec q) (known i)) (kdot a' (S i))
  end.

(* a range for a monomial on the whole half line *)
Definition mrange (a : mono) : I.type :=
  if mzero a then iZ prec 1
  else if falls a then ifrom0 prec (iexp prec (kdot a 0))
  else if falls (mneg a) then iabove (iexp prec (kdot a 0))
  else iabove (iZ prec 0).

Variables (X x : R).
Hypothesis HK : forall i, within (known i) (logs i X).
Hypothesis Hx : X <= x.

Lemma kpos_correct i : kpos i = true -> 0 < logs i X.
Proof. intros H. now apply (ipos_correct (known i)). Qed.

Lemma kpos_far i : kpos i = true -> 0 < logs i x.
Proof. intros H. apply logs_pos_rise with X; [now apply kpos_correct|exact Hx]. Qed.

Lemma all_positive_correct n i : all_positive n = true -> (i < n)%nat -> 0 < logs i X.
Proof.
  intros H Hi. apply kpos_correct. unfold all_positive in H. rewrite forallb_forall in H. apply H. apply in_seq. lia.
Qed.

Lemma step_nonneg i : (forall l, (l < i)%nat -> 0 < logs l X) -> 0 <= logs i x - logs i X.
Proof.
  destruct i as [|i]; intros H; [simpl; lra|]. specialize (H i ltac:(lia)).
  pose proof (logs_rise i X x H Hx). simpl. pose proof (ln_le (logs i X) (logs i x) H ltac:(lra)). lra.
Qed.

Lemma step_le i : 0 < logs i X -> logs (S i) x - logs (S i) X <= / logs i X * (logs i x - logs i X).
Proof.
  intros H. pose proof (logs_rise i X x H Hx) as R. simpl. rewrite Rmult_comm. apply ln_minus_le; lra.
Qed.

Fixpoint real_slope (a : mono) (i : nat) : R :=
  match a with
  | [] => 0
  | q :: a' => (if Qle_bool q 0 then 0 else Q2R q) + (if mzero a' then 0 else / logs i X * real_slope a' (S i))
  end.

Lemma slope_correct a i : within (slope a i) (real_slope a i).
Proof.
  revert i. induction a as [|q a IH]; intros i; cbn [slope real_slope]; [apply iZ_correct|].
  assert (F : within (if Qle_bool q 0 then iZ prec 0 else iQ prec q) (if Qle_bool q 0 then 0 else Q2R q)).
  { destruct (Qle_bool q 0); [apply iZ_correct|apply iQ_correct]. }
  destruct (mzero a); [now rewrite Rplus_0_r|].
  apply iadd_correct; [exact F|]. apply imul_correct; [apply iinv_correct, HK|apply IH].
Qed.

Lemma Qle_bool_R q : Qle_bool q 0 = true -> Q2R q <= 0.
Proof. intros H. apply Qle_bool_iff in H. apply Qle_Rle in H. unfold Q2R in H at 2. simpl in H. lra. Qed.

Lemma Qle_bool_R_false q : Qle_bool q 0 = false -> 0 <= Q2R q.
Proof.
  intros H. destruct (Qlt_le_dec 0 q) as [h|h].
  - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
  - apply Qle_bool_iff in h. congruence.
Qed.

Lemma mdot_rise a i : (forall l, (l < i + levels a - 1)%nat -> 0 < logs l X) ->
  mdot a i x - mdot a i X <= real_slope a i * (logs i x - logs i X) /\ 0 <= real_slope a i.
Proof.
  revert i. induction a as [|q a IH]; intros i H; [simpl; lra|].
  destruct (mzero (q :: a)) eqn:Z.
  - rewrite !(mdot_mzero _ _ _ Z). cbn [mzero forallb] in Z. apply Bool.andb_true_iff in Z. destruct Z as [Zq Za].
    fold (mzero a) in Za. cbn [real_slope]. rewrite Za. pose proof (Q2R_zero_of q Zq) as Eq. destruct (Qle_bool q 0); [|rewrite Eq]; lra.
  - cbn [levels] in H. rewrite Z in H.
    assert (D : 0 <= logs i x - logs i X) by (apply step_nonneg; intros l Hl; apply H; lia).
    assert (Q : Q2R q * (logs i x - logs i X) <= (if Qle_bool q 0 then 0 else Q2R q) * (logs i x - logs i X)
                /\ 0 <= if Qle_bool q 0 then 0 else Q2R q).
    { destruct (Qle_bool q 0) eqn:E; [pose proof (Qle_bool_R q E)|pose proof (Qle_bool_R_false q E)]; nra. }
    destruct Q as [Q1 Q2]. cbn [mdot real_slope]. destruct (mzero a) eqn:Za.
    + rewrite !(mdot_mzero a _ _ Za). lra.
    + assert (dp : (1 <= levels a)%nat) by (destruct a; [discriminate|]; cbn [levels]; rewrite Za; lia).
      assert (P : 0 < logs i X) by (apply H; lia).
      destruct (IH (S i)) as [I1 I2]. { intros l Hl. apply H. lia. }
      pose proof (step_le i P) as S1. assert (PI : 0 < / logs i X) by now apply Rinv_0_lt_compat.
      split; [|assert (0 <= / logs i X * real_slope a (S i)) by (apply Rmult_le_pos; lra); lra].
      assert (real_slope a (S i) * (logs (S i) x - logs (S i) X)
              <= real_slope a (S i) * (/ logs i X * (logs i x - logs i X))) by (apply Rmult_le_compat_l; lra).
      lra.
Qed.

Lemma leads_down_correct a i : leads_down a i = true -> (forall l, (l < i + levels a - 1)%nat -> 0 < logs l X) ->
  mdot a i x <= mdot a i X.
Proof.
  revert i. induction a as [|q a IH]; intros i L H; [simpl; lra|]. cbn [leads_down] in L. cbn [mdot].
  destruct (mzero (q :: a)) eqn:Z.
  { pose proof (mdot_mzero (q :: a) i x Z) as E1. pose proof (mdot_mzero (q :: a) i X Z) as E2.
    cbn [mdot] in E1, E2. lra. }
  cbn [levels] in H. rewrite Z in H.
  destruct (Qeq_bool q 0) eqn:E0.
  - rewrite (Q2R_zero_of q E0), !Rmult_0_l. specialize (IH (S i) L ltac:(intros l Hl; apply H; lia)). lra.
  - assert (D : 0 <= logs i x - logs i X) by (apply step_nonneg; intros l Hl; apply H; lia).
    destruct (mzero a) eqn:Za.
    + rewrite !(mdot_mzero a _ _ Za). pose proof (inonpos_correct _ _ L (iQ_correct prec q)). nra.
    + assert (dp : (1 <= levels a)%nat) by (destruct a; [discriminate|]; cbn [levels]; rewrite Za; lia).
      assert (P : 0 < logs i X) by (apply H; lia).
      assert (B : Q2R q + / logs i X * real_slope a (S i) <= 0).
      { apply (inonpos_correct _ _ L). apply iadd_correct; [apply iQ_correct|].
        apply imul_correct; [apply iinv_correct, HK|apply slope_correct]. }
      destruct (mdot_rise a (S i)) as [I1 I2]. { intros l Hl. apply H. lia. }
      pose proof (step_le i P) as S1.
      assert (real_slope a (S i) * (logs (S i) x - logs (S i) X)
              <= real_slope a (S i) * (/ logs i X * (logs i x - logs i X))) by (apply Rmult_le_compat_l; lra).
      nra.
Qed.

Lemma falls_correct a : falls a = true -> meval a x <= meval a X.
Proof.
  intros H. unfold falls in H. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
  apply exp_le. apply (leads_down_correct a 0 H2). intros l Hl. apply (all_positive_correct (levels a - 1) l H1). lia.
Qed.

Lemma kdot_correct a i : within (kdot a i) (mdot a i X).
Proof.
  revert i. induction a as [|q a IH]; intros i; cbn [kdot mdot]; [apply iZ_correct|].
  destruct (Qeq_bool q 0) eqn:E.
  - rewrite (Q2R_zero_of q E), Rmult_0_l, Rplus_0_l. apply IH.
  - apply iadd_correct; [|apply IH]. apply imul_correct; [apply iQ_correct|apply HK].
Qed.

Lemma mrange_correct a : within (mrange a) (meval a x).
Proof.
  unfold mrange. destruct (mzero a) eqn:Z.
  { unfold meval. rewrite (mdot_mzero a 0 x Z), exp_0. apply iZ_correct. }
  pose proof (iexp_correct prec _ _ (kdot_correct a 0)) as E. fold (meval a X) in E. pose proof (meval_pos a x) as P.
  destruct (falls a) eqn:F1.
  - apply ifrom0_correct with (meval a X); [exact E|]. left. split; [lra|now apply falls_correct].
  - destruct (falls (mneg a)) eqn:F2.
    + apply iabove_correct with (meval a X); [exact E|]. apply falls_correct in F2. rewrite !meval_mneg in F2.
      pose proof (meval_pos a X). apply Rinv_le_contravar in F2; [|apply Rinv_0_lt_compat; lra].
      rewrite !Rinv_inv in F2 by lra. exact F2.
    + apply iabove_correct with 0; [apply iZ_correct|lra].
Qed.
End HalfLine.
