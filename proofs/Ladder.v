(* Bertrand's ladder, all rungs, both directions.

     logs 0 x = x, logs 1 x = ln x, logs 2 x = ln (ln x), ...
     scale m s x = x * ln x * ... * logs (m-1) x * (logs m x) ^ s
   The sum of 1 / scale m s t over the integers converges if and only if s > 1. Both directions telescope, so no
   integral and no derivative occurs. The two theorems at the end take Farfield's certificates to verdicts. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms.
Open Scope R_scope.

Fixpoint logs (m : nat) (x : R) : R := match m with O => x | S i => ln (logs i x) end.

Fixpoint product (m : nat) (x : R) : R := match m with O => 1 | S i => product i x * logs i x end.

Definition scale (m : nat) (s x : R) : R := product m x * Rpower (logs m x) s.

(* one logarithm that is positive makes those before it greater than 1 *)
Lemma logs_pos_before m x : 0 < logs (S m) x -> 1 < logs m x.
Proof. apply ln_pos_inv. Qed.

Lemma logs_pos_le m i x : (i <= m)%nat -> 0 < logs m x -> 0 < logs i x.
Proof.
  intros Hi. induction Hi as [|m Hi IH]; intros H; [exact H|].
  apply IH. pose proof (logs_pos_before m x H). lra.
Qed.

Lemma logs_rise m x y : 0 < logs m x -> x <= y -> logs m x <= logs m y.
Proof.
  revert x y. induction m as [|m IH]; intros x y Hx Hxy; [exact Hxy|].
  pose proof (logs_pos_before m x Hx). simpl. apply ln_le; [lra|]. apply IH; lra.
Qed.

Lemma logs_pos_rise m x y : 0 < logs m x -> x <= y -> 0 < logs m y.
Proof. intros Hx Hxy. pose proof (logs_rise m x y Hx Hxy). lra. Qed.

Lemma product_pos m x : (forall i, (i < m)%nat -> 0 < logs i x) -> 0 < product m x.
Proof.
  induction m as [|m IH]; intros H; simpl; [lra|].
  apply Rmult_lt_0_compat; [apply IH; intros; apply H; lia|apply H; lia].
Qed.

Lemma product_pos_logs m x : 0 < logs m x -> 0 < product m x.
Proof. intros H. apply product_pos. intros i Hi. apply logs_pos_le with m; [lia|exact H]. Qed.

Lemma scale_pos m s x : 0 < logs m x -> 0 < scale m s x.
Proof. intros H. apply Rmult_lt_0_compat; [now apply product_pos_logs|apply Rpower_pos]. Qed.

Lemma scale_1 m x : 0 < logs m x -> scale m 1 x = product (S m) x.
Proof. intros H. unfold scale. now rewrite Rpower_1. Qed.

(* one step of an iterated logarithm, from above and from below *)
Lemma logs_step_le m x : 0 < logs m x -> logs (S m) (x + 1) - logs (S m) x <= / product (S m) x.
Proof.
  intros H. assert (D : forall i, (i <= S m)%nat -> logs i (x + 1) - logs i x <= / product i x); [|now apply D].
  induction i as [|i IH]; intros Hi; [simpl; lra|].
  specialize (IH ltac:(lia)). assert (Pi : 0 < logs i x) by (apply logs_pos_le with m; [lia|exact H]).
  assert (Pj : 0 < logs i (x + 1)) by (apply logs_pos_rise with x; [exact Pi|lra]).
  assert (PP : 0 < product i x) by now apply product_pos_logs.
  simpl. apply Rle_trans with (1 := ln_minus_le _ _ Pi Pj).
  rewrite Rinv_mult by lra. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|exact IH].
Qed.

Lemma logs_step_ge m x : 0 < logs m x -> / product m (x + 1) <= logs m (x + 1) - logs m x.
Proof.
  intros H. assert (D : forall i, (i <= m)%nat -> / product i (x + 1) <= logs i (x + 1) - logs i x); [|now apply D].
  induction i as [|i IH]; intros Hi; [simpl; lra|].
  specialize (IH ltac:(lia)). assert (Pi : 0 < logs i x) by (apply logs_pos_le with m; [lia|exact H]).
  assert (Pj : 0 < logs i (x + 1)) by (apply logs_pos_rise with x; [exact Pi|lra]).
  assert (PP : 0 < product i (x + 1)) by now apply product_pos_logs.
  simpl. apply Rle_trans with (2 := ln_minus_ge _ _ Pi Pj).
  rewrite Rinv_mult by lra. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|exact IH].
Qed.

(* (y^(1-s) - z^(1-s))/(s-1) >= (z-y) z^-s: the telescope of a power *)
Lemma power_step s y z : 1 < s -> 0 < y -> 0 < z ->
  (z - y) * / Rpower z s <= Rpower y (1 - s) / (s - 1) - Rpower z (1 - s) / (s - 1).
Proof.
  intros Hs Hy Hz. pose proof (ln_minus_ge y z Hy Hz) as L.
  assert (E : Rpower y (1 - s) = Rpower z (1 - s) * exp ((s - 1) * (ln z - ln y))).
  { unfold Rpower. rewrite <- exp_plus. f_equal. ring. }
  assert (F : (z - y) * / Rpower z s = Rpower z (1 - s) * ((z - y) / z)).
  { unfold Rminus at 2. rewrite Rpower_plus, Rpower_1, Rpower_Ropp by exact Hz. field.
    split; [lra|]. pose proof (Rpower_pos z s). lra. }
  rewrite E, F. pose proof (exp_ge_tangent ((s - 1) * (ln z - ln y))) as T.
  pose proof (Rpower_pos z (1 - s)) as P.
  apply Rle_trans with (Rpower z (1 - s) * (((1 + (s - 1) * (ln z - ln y)) - 1) / (s - 1))).
  - apply Rmult_le_compat_l; [lra|]. replace ((1 + (s - 1) * (ln z - ln y) - 1) / (s - 1)) with (ln z - ln y)
      by (field; lra). exact L.
  - unfold Rdiv. rewrite <- Rmult_assoc, <- Rmult_minus_distr_r.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]. nra.
Qed.

Theorem bertrand_converges m s N : 1 < s -> 0 < logs m (INR N) ->
  ex_series (fun n => / scale m s (INR (N + n))).
Proof.
  intros Hs HN. apply (ex_series_incr_1 (fun n => / scale m s (INR (N + n)))).
  assert (P : forall n, 0 < logs m (INR (N + n))).
  { intros n. apply logs_pos_rise with (INR N); [exact HN|]. apply le_INR. lia. }
  apply ex_series_telescope with (F := fun n => Rpower (logs m (INR (N + n))) (1 - s) / (s - 1)).
  - intros n. left. now apply Rinv_0_lt_compat, scale_pos.
  - intros n. left. apply Rdiv_lt_0_compat; [apply Rpower_pos|lra].
  - intros n. specialize (P n). rewrite Nat.add_succ_r, S_INR. set (x := INR (N + n)) in *.
    assert (P1 : 0 < logs m (x + 1)) by (apply logs_pos_rise with x; [exact P|lra]).
    apply Rle_trans with (2 := power_step s _ _ Hs P P1).
    unfold scale. rewrite Rinv_mult.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Rpower_pos|]. now apply logs_step_ge.
Qed.

Lemma is_lim_logs m : is_lim_seq (fun n => logs m (INR n)) p_infty.
Proof. induction m as [|m IH]; [apply is_lim_seq_INR|]. now apply is_lim_ln_seq. Qed.

Lemma logs_eventually m K : exists N, forall n, (N <= n)%nat -> K < logs m (INR n).
Proof.
  pose proof (is_lim_logs m) as H. apply is_lim_seq_spec in H. destruct (H K) as [N HN]. now exists N.
Qed.

Lemma bertrand_diverges_1 m N : 0 < logs m (INR N) -> ~ ex_series (fun n => / scale m 1 (INR (N + n))).
Proof.
  intros HN. apply diverges_telescope with (F := fun n => logs (S m) (INR (N + n))).
  - pose proof (is_lim_logs (S m)) as L. apply (is_lim_seq_incr_n _ N) in L.
    apply is_lim_seq_ext with (2 := L). intros n. now rewrite Nat.add_comm.
  - intros n. rewrite Nat.add_succ_r, S_INR.
    assert (P : 0 < logs m (INR (N + n))).
    { apply logs_pos_rise with (INR N); [exact HN|]. apply le_INR. lia. }
    rewrite scale_1 by exact P. now apply logs_step_le.
Qed.

Theorem bertrand_diverges m s N : s <= 1 -> 0 < logs m (INR N) ->
  ~ ex_series (fun n => / scale m s (INR (N + n))).
Proof.
  intros Hs HN. destruct (logs_eventually m 1) as [N1 H1].
  apply (diverges_above (fun n => / scale m 1 (INR (N + n))) _ N1); [|now apply bertrand_diverges_1].
  intros n Hn. specialize (H1 (N + n)%nat ltac:(lia)). set (x := INR (N + n)) in *.
  assert (P : 0 < logs m x) by lra. split; [left; now apply Rinv_0_lt_compat, scale_pos|].
  apply Rinv_le_contravar; [now apply scale_pos|].
  apply Rmult_le_compat_l; [left; now apply product_pos_logs|]. apply Rpower_le_exponent; lra.
Qed.

Theorem bertrand m s N : 0 < logs m (INR N) -> (ex_series (fun n => / scale m s (INR (N + n))) <-> 1 < s).
Proof.
  intros HN. split; [|intros; now apply bertrand_converges].
  intros H. destruct (Rle_or_lt s 1) as [h|h]; [exfalso|exact h]. now apply (bertrand_diverges m s N h HN).
Qed.

(* ------------------------------------------------------------------------------- from a certificate to a verdict *)
(* "upper": |b(t)| <= C / scale m s t for all t >= X, s > 1 *)
Theorem upper_converges (b : nat -> R) (C : R) (m : nat) (s X : R) :
  1 < s -> 0 < logs m X -> (forall t, X <= INR t -> Rabs (b t) <= C / scale m s (INR t)) -> ex_series b.
Proof.
  intros Hs HX H. destruct (exists_INR_above X) as [N HN]. apply (ex_series_from b N).
  apply (ex_series_eventually _ (fun n => C * / scale m s (INR (N + n))) 0).
  - intros n _. apply H. apply Rle_trans with (1 := HN). apply le_INR. lia.
  - apply (ex_series_scal_l C (fun n => / scale m s (INR (N + n)))).
    apply bertrand_converges; [exact Hs|]. now apply logs_pos_rise with X.
Qed.

(* "lower": b(t) >= c / scale m s t for all t >= X, s <= 1 *)
Theorem lower_diverges (b : nat -> R) (c : R) (m : nat) (s X : R) :
  0 < c -> s <= 1 -> 0 < logs m X -> (forall t, X <= INR t -> c / scale m s (INR t) <= b t) -> ~ ex_series b.
Proof.
  intros Hc Hs HX H K. destruct (exists_INR_above X) as [N HN]. apply (ex_series_from b N) in K.
  assert (P : forall n, 0 < logs m (INR (N + n))).
  { intros n. apply logs_pos_rise with X; [exact HX|]. apply Rle_trans with (1 := HN). apply le_INR. lia. }
  apply (bertrand_diverges m s N Hs).
  - specialize (P 0%nat). now rewrite Nat.add_0_r in P.
  - apply (ex_series_below _ (fun n => / c * b (N + n)%nat) 0).
    + intros n _. specialize (P n). split; [left; now apply Rinv_0_lt_compat, scale_pos|].
      apply (Rmult_le_reg_l c); [exact Hc|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
      apply H. apply Rle_trans with (1 := HN). apply le_INR. lia.
    + exact (ex_series_scal_l (/ c) (fun n => b (N + n)%nat) K).
Qed.

(* rung 0, written out *)
Lemma scale_0 s x : scale 0 s x = Rpower x s.
Proof. unfold scale. simpl. ring. Qed.

Lemma scale_1_s s x : scale 1 s x = x * Rpower (ln x) s.
Proof. unfold scale. simpl. ring. Qed.

Lemma scale_2_s s x : scale 2 s x = x * ln x * Rpower (ln (ln x)) s.
Proof. unfold scale. simpl. ring. Qed.

Theorem power_converges (b : nat -> R) (C s X : R) :
  1 < s -> 0 < X -> (forall t, X <= INR t -> Rabs (b t) <= C * Rpower (INR t) (- s)) -> ex_series b.
Proof.
  intros Hs HX H. apply (upper_converges b C 0 s X Hs HX). intros t Ht.
  rewrite scale_0. unfold Rdiv. rewrite <- Rpower_Ropp. now apply H.
Qed.
