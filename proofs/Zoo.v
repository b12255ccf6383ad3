(* The encodings of the zoo, for all parameters: each verdict with its condition, in the printed and in the trained form.

   k is a slope, p and a are the parameters of Kerple, w the size of a window. b(t) = exp(r(t)) with the bias r that
   `farfield zoo` prints. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder.
Open Scope R_scope.

Definition alibi (k : R) (t : nat) : R := exp (- k * INR t).
Definition type1 (k : R) (t : nat) : R := exp (- ln (1 + (k * INR t) ^ 2)).
Definition type1_paper (t : nat) : R := exp (- 2 * ln (INR t + 1)).
Definition type2 (k : R) (t : nat) : R := exp (- (ln (3 + k * INR t)) ^ 2).
Definition type2_paper (t : nat) : R := exp (- (ln (INR t + 1)) ^ 2).
Definition inverse (k : R) (t : nat) : R := exp (- ln (1 + k * INR t)).
Definition inverse_paper (t : nat) : R := exp (- ln (INR t + 1)).
Definition inverse_log (k : R) (t : nat) : R := exp (- ln (3 + k * INR t) - ln (ln (3 + k * INR t))).
Definition inverse_log_paper (t : nat) : R := exp (- ln (INR t + 2) - ln (ln (INR t + 2))).
Definition kerple_log (p a : R) (t : nat) : R := exp (- p * ln (1 + a * INR t)).
Definition kerple_power (a p : R) (t : nat) : R := exp (- a * power (INR t) p).
Definition window (w : nat) (t : nat) : R := if Nat.ltb t w then 1 else 0.
Definition window_paper (w : nat) (t : nat) : R := if Nat.leb t w then 1 else 0.
(* the same as a mask on the bias, w any number *)
Definition window_mask (w : R) (t : nat) : R := if Rlt_dec (INR t) w then exp 0 else 0.
Definition window_paper_mask (w : R) (t : nat) : R := if Rle_dec (INR t) w then exp 0 else 0.
Definition none (t : nat) : R := exp 0.
Definition t5 (near far : R) (t : nat) : R := exp (if Rlt_dec (INR t) 113 then near else far).
(* the waves j = 1 .. m; the trained form divides by s, the printed one multiplies by k *)
Definition waves (r d : R) (m : nat) (t : nat) : R :=
  head (fun j => cos (INR t / Rpower r (2 * INR (S j) / d))) m.
Definition sandwich (r d s : R) (m : nat) (t : nat) : R := exp ((waves r d m t - INR m) / s).
Definition sandwich_paper (k r d : R) (m : nat) (t : nat) : R := exp (k * (waves r d m t - INR m)).

Lemma INR_ge_1 t : (1 <= t)%nat -> 1 <= INR t.
Proof. intros H. apply (le_INR 1). exact H. Qed.

(* -------------------------------------------------------------------------------------------- exponential and windows *)
Theorem alibi_converges_iff k : ex_series (alibi k) <-> 0 < k.
Proof.
  split.
  - intros H. destruct (Rlt_or_le 0 k) as [h|h]; [exact h|exfalso].
    apply (diverges_constant (alibi k) 1 0 Rlt_0_1); [|exact H]. intros t _. unfold alibi. rewrite <- exp_0. apply exp_le.
    pose proof (pos_INR t). nra.
  - intros Hk. apply ex_series_ext with (fun t => exp (- k) ^ t).
    + intros t. unfold alibi. rewrite <- Rpower_pow by apply exp_pos. unfold Rpower. rewrite ln_exp. f_equal. ring.
    + apply ex_series_geom. rewrite Rabs_right by (left; apply exp_pos). rewrite <- exp_0. apply exp_increasing. lra.
Qed.

Theorem window_converges w : ex_series (window w).
Proof.
  apply (ex_series_finite _ w). intros t Ht. unfold window.
  replace (Nat.ltb t w) with false by (symmetry; apply Nat.ltb_ge; exact Ht). reflexivity.
Qed.

Theorem window_paper_converges w : ex_series (window_paper w).
Proof.
  apply (ex_series_finite _ (S w)). intros t Ht. unfold window_paper.
  replace (Nat.leb t w) with false by (symmetry; apply Nat.leb_gt; lia). reflexivity.
Qed.

Lemma window_mask_nat w t : window_mask (INR w) t = window w t.
Proof.
  unfold window_mask, window. destruct (Nat.ltb t w) eqn:E.
  - apply Nat.ltb_lt in E. apply lt_INR in E. destruct (Rlt_dec (INR t) (INR w)); [apply exp_0|lra].
  - apply Nat.ltb_ge in E. apply le_INR in E. destruct (Rlt_dec (INR t) (INR w)); [lra|reflexivity].
Qed.

Theorem window_mask_converges w : ex_series (window_mask w).
Proof.
  destruct (exists_INR_above w) as [N HN]. apply (ex_series_finite _ N). intros t Ht. unfold window_mask.
  apply le_INR in Ht. destruct (Rlt_dec (INR t) w); [lra|reflexivity].
Qed.

Theorem window_paper_mask_converges w : ex_series (window_paper_mask w).
Proof.
  destruct (exists_INR_above (w + 1)) as [N HN]. apply (ex_series_finite _ N). intros t Ht. unfold window_paper_mask.
  apply le_INR in Ht. destruct (Rle_dec (INR t) w); [lra|reflexivity].
Qed.

(* a bias that is constant from some distance on *)
Theorem constant_tail_diverges (r : nat -> R) (c : R) (N : nat) :
  (forall t, (N <= t)%nat -> r t = c) -> ~ ex_series (fun t => exp (r t)).
Proof.
  intros H. apply (diverges_constant _ (exp c) N (exp_pos c)). intros t Ht. rewrite H by exact Ht. lra.
Qed.

Theorem none_diverges : ~ ex_series none.
Proof. apply (constant_tail_diverges (fun _ => 0) 0 0). reflexivity. Qed.

Theorem t5_diverges near far : ~ ex_series (t5 near far).
Proof.
  apply (constant_tail_diverges (fun t => if Rlt_dec (INR t) 113 then near else far) far 113). intros t Ht.
  apply le_INR in Ht. rewrite (INR_IZR_INZ 113) in Ht. simpl in Ht. destruct (Rlt_dec (INR t) 113); [lra|reflexivity].
Qed.

(* --------------------------------------------------------------------------------------------------------- power laws *)
Theorem kerple_log_converges p a : 1 < p -> 0 < a -> ex_series (kerple_log p a).
Proof.
  intros Hp Ha. apply (power_converges (kerple_log p a) (Rpower a (- p)) p 1 Hp Rlt_0_1). intros t Ht.
  unfold kerple_log. rewrite Rabs_right by (left; apply exp_pos). rewrite Rpower_mult_distr by lra.
  unfold Rpower. apply exp_le. assert (ln (a * INR t) <= ln (1 + a * INR t)) by (apply ln_le; nra). nra.
Qed.

Lemma affine_inverse_diverges (b : nat -> R) (c k : R) :
  0 < c -> 0 <= k -> (forall t, (1 <= t)%nat -> / (c + k * INR t) <= b t) -> ~ ex_series b.
Proof.
  intros Hc Hk H. apply (lower_diverges b (/ (c + k)) 0 1 1).
  - apply Rinv_0_lt_compat. lra.
  - lra.
  - simpl. lra.
  - intros t Ht. assert (Ht1 : (1 <= t)%nat) by (apply INR_le; exact Ht).
    rewrite scale_0, Rpower_1 by lra. unfold Rdiv. rewrite <- Rinv_mult by lra.
    apply Rle_trans with (2 := H t Ht1). apply Rinv_le_contravar; nra.
Qed.

Theorem kerple_log_diverges p a : p <= 1 -> 0 < a -> ~ ex_series (kerple_log p a).
Proof.
  intros Hp Ha. apply (affine_inverse_diverges _ 1 a Rlt_0_1 ltac:(lra)). intros t Ht. unfold kerple_log.
  pose proof (INR_ge_1 t Ht) as H. assert (P : 1 <= 1 + a * INR t) by nra.
  rewrite <- (exp_ln (/ (1 + a * INR t))) by (apply Rinv_0_lt_compat; lra). apply exp_le. rewrite ln_Rinv by lra.
  pose proof (ln_nonneg _ P). nra.
Qed.

Theorem kerple_log_converges_iff p a : 0 < a -> (ex_series (kerple_log p a) <-> 1 < p).
Proof.
  intros Ha. split; [|intros; now apply kerple_log_converges].
  intros H. destruct (Rlt_or_le 1 p) as [h|h]; [exact h|exfalso]. now apply (kerple_log_diverges p a h Ha).
Qed.

Theorem type1_converges k : 0 < k -> ex_series (type1 k).
Proof.
  intros Hk. apply (power_converges (type1 k) (Rpower k (- 2)) 2 1 ltac:(lra) Rlt_0_1). intros t Ht.
  unfold type1. rewrite Rabs_right by (left; apply exp_pos). rewrite Rpower_mult_distr by lra.
  unfold Rpower. apply exp_le. set (y := k * INR t). assert (Py : 0 < y) by (unfold y; nra).
  assert (E : 2 * ln y = ln (y ^ 2)) by (rewrite <- (Rpower_pow 2 y Py); unfold Rpower; rewrite ln_exp; simpl; ring).
  assert (ln (y ^ 2) <= ln (1 + y ^ 2)) by (apply ln_le; [apply pow_lt; exact Py|lra]). lra.
Qed.

Theorem type1_paper_converges : ex_series type1_paper.
Proof.
  apply ex_series_ext with (kerple_log 2 1); [|apply kerple_log_converges; lra].
  intros t. unfold kerple_log, type1_paper. f_equal. f_equal. f_equal. ring.
Qed.

Theorem inverse_diverges k : 0 < k -> ~ ex_series (inverse k).
Proof.
  intros Hk H. apply (kerple_log_diverges 1 k (Rle_refl 1) Hk). apply ex_series_ext with (2 := H).
  intros t. unfold kerple_log, inverse. f_equal. ring.
Qed.

Theorem inverse_paper_diverges : ~ ex_series inverse_paper.
Proof.
  intros H. apply (inverse_diverges 1 Rlt_0_1). apply ex_series_ext with (2 := H).
  intros t. unfold inverse, inverse_paper. f_equal. f_equal. f_equal. ring.
Qed.

(* ----------------------------------------------------------------------------------------- faster than every power law *)
(* exp(-phi(t)) with phi(t) >= 2 ln t from some distance on *)
Lemma beyond_power_converges (r : nat -> R) (X : R) : 0 < X ->
  (forall t, X <= INR t -> r t <= - 2 * ln (INR t)) -> ex_series (fun t => exp (r t)).
Proof.
  intros HX H. apply (power_converges _ 1 2 X ltac:(lra) HX). intros t Ht. rewrite Rabs_right by (left; apply exp_pos).
  rewrite Rmult_1_l. unfold Rpower. apply exp_le. specialize (H t Ht). lra.
Qed.

Theorem log_square_converges c k : 0 <= c -> 0 < k -> ex_series (fun t => exp (- (ln (c + k * INR t)) ^ 2)).
Proof.
  intros Hc Hk. set (l := ln k). set (X := exp (2 + 2 * Rabs l)).
  apply (beyond_power_converges _ X (exp_pos _)). intros t Ht.
  assert (Pt : 0 < INR t) by (apply Rlt_le_trans with (2 := Ht); apply exp_pos).
  assert (HL : 2 + 2 * Rabs l <= ln (INR t)).
  { rewrite <- (ln_exp (2 + 2 * Rabs l)). apply ln_le; [apply exp_pos|exact Ht]. }
  assert (Hl : - Rabs l <= l) by (pose proof (Rle_abs (- l)); rewrite Rabs_Ropp in H; lra).
  assert (Ha : 0 <= Rabs l) by apply Rabs_pos.
  assert (A : ln (INR t) + l <= ln (c + k * INR t)).
  { unfold l. rewrite <- ln_mult by assumption. apply ln_le; nra. }
  set (y := ln (c + k * INR t)) in *. set (L := ln (INR t)) in *.
  assert (B : 0 <= L + l) by lra. assert ((L + l) * (L + l) <= y * y) by (apply Rmult_le_compat; lra).
  assert (2 * L <= (L + l) * (L + l)) by nra. simpl. lra.
Qed.

Theorem type2_converges k : 0 < k -> ex_series (type2 k).
Proof. intros Hk. apply log_square_converges; lra. Qed.

Theorem type2_paper_converges : ex_series type2_paper.
Proof.
  apply ex_series_ext with (fun t => exp (- (ln (1 + 1 * INR t)) ^ 2)); [|apply log_square_converges; lra].
  intros t. unfold type2_paper. do 4 f_equal. ring.
Qed.

Theorem kerple_power_converges a p : 0 < a -> 0 < p -> ex_series (kerple_power a p).
Proof.
  intros Ha Hp. set (X := exp (2 / a / (p * p))).
  assert (Q : 0 <= 2 / a / (p * p)).
  { left. apply Rdiv_lt_0_compat; [apply Rdiv_lt_0_compat; lra|nra]. }
  apply (beyond_power_converges _ X (exp_pos _)). intros t Ht.
  assert (P1 : 1 <= INR t).
  { apply Rle_trans with (2 := Ht). unfold X. rewrite <- exp_0. now apply exp_le. }
  rewrite power_pos by lra.
  assert (HL : 2 / a / (p * p) <= ln (INR t)).
  { rewrite <- (ln_exp (2 / a / (p * p))). apply ln_le; [apply exp_pos|exact Ht]. }
  assert (C : 2 / a <= p * p * ln (INR t)).
  { apply (Rmult_le_compat_l (p * p)) in HL; [|nra].
    replace (p * p * (2 / a / (p * p))) with (2 / a) in HL by (field; split; lra). exact HL. }
  pose proof (power_beats_log p (2 / a) (INR t) Hp P1 C) as B.
  apply (Rmult_le_compat_l a) in B; [|lra]. replace (a * (2 / a * ln (INR t))) with (2 * ln (INR t)) in B by (field; lra). lra.
Qed.

Theorem kerple_power_converges_iff a p : 0 < p -> (ex_series (kerple_power a p) <-> 0 < a).
Proof.
  intros Hp. split; [|intros; now apply kerple_power_converges].
  intros H. destruct (Rlt_or_le 0 a) as [h|h]; [exact h|exfalso].
  apply (diverges_constant (kerple_power a p) 1 0 Rlt_0_1); [|exact H]. intros t _. unfold kerple_power.
  rewrite <- exp_0 at 1. apply exp_le.
  assert (0 <= power (INR t) p) by apply power_nonneg. nra.
Qed.

(* ----------------------------------------------------------------------------------------------------------- rung one *)
Lemma inverse_log_affine_diverges c k : 1 < c -> 0 < k ->
  ~ ex_series (fun t => exp (- ln (c + k * INR t) - ln (ln (c + k * INR t)))).
Proof.
  intros Hc Hk. set (q := (c + k) * (1 + ln (c + k))).
  assert (Pl : 0 < ln (c + k)) by (apply ln_pos; lra).
  assert (Pq : 0 < q) by (unfold q; nra).
  apply (lower_diverges _ (/ q) 1 1 3).
  - now apply Rinv_0_lt_compat.
  - lra.
  - simpl. apply ln_pos. lra.
  - intros t Ht. set (x := INR t) in *. assert (L1 : 1 <= ln x).
    { rewrite <- (ln_exp 1). apply ln_le; [apply exp_pos|]. pose proof exp_le_3. lra. }
    rewrite scale_1_s, Rpower_1 by lra.
    assert (A : c + k * x <= (c + k) * x) by nra. assert (P0 : 1 < c + k * x) by nra.
    assert (B : ln (c + k * x) <= (1 + ln (c + k)) * ln x).
    { apply Rle_trans with (ln ((c + k) * x)); [apply ln_le; lra|]. rewrite ln_mult by lra. nra. }
    assert (P1 : 0 < ln (c + k * x)) by now apply ln_pos.
    unfold Rminus. rewrite exp_plus, !exp_Ropp, !exp_ln by lra. rewrite <- Rinv_mult by lra.
    unfold Rdiv. rewrite <- Rinv_mult by nra. apply Rinv_le_contravar; [apply Rmult_lt_0_compat; lra|].
    unfold q. apply Rle_trans with ((c + k) * x * ((1 + ln (c + k)) * ln x)); [apply Rmult_le_compat; lra|right; ring].
Qed.

Theorem inverse_log_diverges k : 0 < k -> ~ ex_series (inverse_log k).
Proof. intros Hk. apply inverse_log_affine_diverges; lra. Qed.

Theorem inverse_log_paper_diverges : ~ ex_series inverse_log_paper.
Proof.
  intros H. apply (inverse_log_affine_diverges 2 1 ltac:(lra) Rlt_0_1). apply ex_series_ext with (2 := H).
  intros t. unfold inverse_log_paper. replace (2 + 1 * INR t) with (INR t + 2) by ring. reflexivity.
Qed.

(* ------------------------------------------------------------------------------------------------------------ Sandwich *)
Lemma head_waves_ge (f : nat -> R) m : - INR m <= head (fun j => cos (f j)) m <= INR m.
Proof.
  induction m as [|m IH]; [simpl; lra|]. rewrite S_INR. cbn [head]. pose proof (COS_bound (f m)). lra.
Qed.

(* Erratum E3: b(t) >= exp(-|k| d) at every distance, so the sum diverges for every k, r and d *)
Theorem sandwich_paper_diverges k r d m : ~ ex_series (sandwich_paper k r d m).
Proof.
  apply (diverges_constant _ (exp (- Rabs k * (2 * INR m))) 0 (exp_pos _)). intros t _. apply exp_le.
  pose proof (head_waves_ge (fun j => INR t / Rpower r (2 * INR (S j) / d)) m) as [A B]. fold (waves r d m t) in A, B.
  pose proof (Rabs_pos k). pose proof (Rle_abs k). pose proof (Rle_abs (- k)) as C. rewrite Rabs_Ropp in C. nra.
Qed.

Theorem sandwich_diverges r d s m : ~ ex_series (sandwich r d s m).
Proof.
  intros H. apply (sandwich_paper_diverges (/ s) r d m). apply ex_series_ext with (2 := H).
  intros t. unfold sandwich, sandwich_paper. f_equal. unfold Rdiv. ring.
Qed.

(* the same with d = 2 m written in the bias *)
Theorem sandwich_bias_diverges r d s m : d = 2 * INR m -> ~ ex_series (fun t => exp ((waves r d m t - d / 2) / s)).
Proof.
  intros Hd H. apply (sandwich_diverges r d s m). apply ex_series_ext with (2 := H). intros t. unfold sandwich.
  replace (d / 2) with (INR m) by lra. reflexivity.
Qed.

Theorem sandwich_paper_bias_diverges k r d m : d = 2 * INR m -> ~ ex_series (fun t => exp (k * (waves r d m t - d / 2))).
Proof.
  intros Hd H. apply (sandwich_paper_diverges k r d m). apply ex_series_ext with (2 := H). intros t. unfold sandwich_paper.
  replace (d / 2) with (INR m) by lra. reflexivity.
Qed.

(* ------------------------------------------------------------------------- formulas as a person types them, all borders *)
Theorem type1_converges_iff k : ex_series (type1 k) <-> k <> 0.
Proof.
  split.
  - intros H E. apply none_diverges. apply ex_series_ext with (2 := H). intros t. unfold type1, none. rewrite E.
    replace (1 + (0 * INR t) ^ 2) with 1 by ring. rewrite ln_1. f_equal. ring.
  - intros H. destruct (Rdichotomy k 0 H) as [h|h]; [|now apply type1_converges].
    apply ex_series_ext with (type1 (- k)); [|apply type1_converges; lra].
    intros t. unfold type1. do 3 f_equal. ring.
Qed.

(* a bias that does not change, and another that equals it *)
Lemma still_diverges (b : nat -> R) c : (forall t, b t = exp c) -> ~ ex_series b.
Proof.
  intros E H. apply (constant_tail_diverges (fun _ => c) c 0 (fun _ _ => eq_refl)). apply ex_series_ext with (2 := H). exact E.
Qed.

Theorem type2_converges_iff k : 0 <= k -> (ex_series (type2 k) <-> 0 < k).
Proof.
  intros H0. split; [|apply type2_converges]. intros H. destruct H0 as [h|<-]; [exact h|exfalso].
  apply (still_diverges (type2 0) (- (ln 3) ^ 2)); [|exact H]. intros t. unfold type2. do 4 f_equal. ring.
Qed.

Theorem inverse_diverges_from_0 k : 0 <= k -> ~ ex_series (inverse k).
Proof.
  intros [h|<-]; [now apply inverse_diverges|]. apply (still_diverges _ (- ln 1)). intros t. unfold inverse. do 3 f_equal. ring.
Qed.

Theorem inverse_log_diverges_from_0 k : 0 <= k -> ~ ex_series (inverse_log k).
Proof.
  intros [h|<-]; [now apply inverse_log_diverges|]. apply (still_diverges _ (- ln 3 - ln (ln 3))). intros t.
  unfold inverse_log. replace (3 + 0 * INR t) with 3 by ring. reflexivity.
Qed.

Theorem kerple_log_converges_iff_both p a : 0 <= a -> (ex_series (kerple_log p a) <-> 0 < a /\ 1 < p).
Proof.
  intros [h|<-].
  - rewrite (kerple_log_converges_iff p a h). tauto.
  - split; [|lra]. intros H. exfalso. apply (still_diverges (kerple_log p 0) (- p * ln 1)); [|exact H].
    intros t. unfold kerple_log. do 3 f_equal. ring.
Qed.

Theorem kerple_power_converges_iff_both a p : ex_series (kerple_power a p) <-> 0 < p /\ 0 < a.
Proof.
  destruct (Rlt_or_le 0 p) as [Hp|Hp]; [rewrite (kerple_power_converges_iff a p Hp); tauto|].
  split; [|lra]. intros H. exfalso.
  apply (diverges_constant (kerple_power a p) (exp (- Rabs a)) 1 (exp_pos _)); [|exact H]. intros t Ht.
  unfold kerple_power. apply exp_le. pose proof (INR_ge_1 t Ht) as H1. rewrite power_pos by lra.
  assert (P : 0 < Rpower (INR t) p <= 1).
  { split; [apply Rpower_pos|]. rewrite <- (Rpower_O (INR t)) by lra. now apply Rpower_le_exponent. }
  pose proof (Rle_abs a). pose proof (Rabs_pos a). nra.
Qed.

Theorem kerple_power_converges_iff_power a p : 0 < a -> (ex_series (kerple_power a p) <-> 0 < p).
Proof. intros Ha. rewrite kerple_power_converges_iff_both. tauto. Qed.

Theorem power_law_converges_iff p : ex_series (fun t => exp (- p * ln (INR t + 1))) <-> 1 < p.
Proof.
  rewrite <- (kerple_log_converges_iff p 1 Rlt_0_1).
  split; intros H; apply ex_series_ext with (2 := H); intros t; unfold kerple_log; do 3 f_equal; ring.
Qed.

Theorem root_converges_iff k : ex_series (fun t => exp (- k * sqrt (INR t))) <-> 0 < k.
Proof.
  rewrite <- (kerple_power_converges_iff k (/ 2) ltac:(lra)).
  assert (E : forall t, power (INR t) (/ 2) = sqrt (INR t)).
  { intros t. destruct (Req_dec (INR t) 0) as [->|h]; [rewrite power_0, sqrt_0 by lra; reflexivity|].
    assert (P : 0 < INR t) by (pose proof (pos_INR t); lra). rewrite power_pos by exact P. now apply Rpower_sqrt. }
  split; intros H; apply ex_series_ext with (2 := H); intros t; unfold kerple_power; rewrite E; reflexivity.
Qed.
