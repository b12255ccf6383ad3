(* Inequalities for the logarithm, the exponential and real powers that everything else uses. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; now apply exp_increasing|lra]. Qed.

Lemma exp_ge_tangent x : 1 + x <= exp x.
Proof.
  destruct (Req_dec x 0) as [->|H]; [rewrite exp_0; lra|]. left. now apply exp_ineq1.
Qed.

Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros H [K|K]; [left; now apply ln_increasing|right; now rewrite K]. Qed.

(* the logarithm of Coq is 0 where it has no meaning *)
Lemma ln_nonpos_arg x : x <= 0 -> ln x = 0.
Proof. intros H. unfold ln. destruct (Rlt_dec 0 x); [exfalso; lra|reflexivity]. Qed.

Lemma ln_pos x : 1 < x -> 0 < ln x.
Proof. intros H. rewrite <- ln_1. apply ln_increasing; lra. Qed.

Lemma ln_nonneg x : 1 <= x -> 0 <= ln x.
Proof. intros H. rewrite <- ln_1. apply ln_le; lra. Qed.

Lemma ln_pos_inv x : 0 < ln x -> 1 < x.
Proof.
  intros H. destruct (Rle_or_lt x 0) as [h|h]; [rewrite ln_nonpos_arg in H; lra|].
  apply ln_lt_inv; [lra|exact h|]. rewrite ln_1. exact H.
Qed.

Lemma ln_le_tangent x : 0 < x -> ln x <= x - 1.
Proof.
  intros Hx. rewrite <- (ln_exp (x - 1)). apply ln_le; [exact Hx|]. pose proof (exp_ge_tangent (x - 1)). lra.
Qed.

(* ln y - ln x lies between (y-x)/y and (y-x)/x *)
Lemma ln_minus_le x y : 0 < x -> 0 < y -> ln y - ln x <= (y - x) / x.
Proof.
  intros Hx Hy. rewrite <- ln_div by assumption.
  apply Rle_trans with (1 := ln_le_tangent (y / x) (Rdiv_lt_0_compat _ _ Hy Hx)).
  right. field. lra.
Qed.

Lemma ln_minus_ge x y : 0 < x -> 0 < y -> (y - x) / y <= ln y - ln x.
Proof.
  intros Hx Hy. pose proof (ln_minus_le y x Hy Hx) as H.
  replace ((y - x) / y) with (- ((x - y) / y)) by (field; lra). lra.
Qed.

(* ln x <= x/X + ln X - 1: the tangent at X *)
Lemma ln_tangent X x : 0 < X -> 0 < x -> ln x <= x / X + ln X - 1.
Proof.
  intros HX Hx. pose proof (ln_minus_le X x HX Hx) as H.
  replace ((x - X) / X) with (x / X - 1) in H by (field; lra). lra.
Qed.

(* every positive power beats the logarithm *)
Lemma ln_le_power p x : 0 < p -> 0 < x -> ln x <= Rpower x p / p.
Proof.
  intros Hp Hx. unfold Rpower. pose proof (exp_ge_tangent (p * ln x)) as H.
  apply (Rmult_le_reg_l p); [exact Hp|]. replace (p * (exp (p * ln x) / p)) with (exp (p * ln x)) by (field; lra). lra.
Qed.

Lemma exp_ge_square y : 0 <= y -> y * y <= exp y.
Proof.
  intros Hy. assert (E : exp y = Rsqr (Rsqr (exp (y / 4)))).
  { unfold Rsqr. rewrite <- !exp_plus. f_equal. field. }
  rewrite E. pose proof (exp_ge_tangent (y / 4)) as H.
  assert (P : y <= Rsqr (exp (y / 4))).
  { apply Rle_trans with ((1 + y / 4) * (1 + y / 4)); [|apply Rmult_le_compat; lra].
    pose proof (Rle_0_sqr (1 - y / 4)) as Q. unfold Rsqr in Q. lra. }
  apply Rmult_le_compat; lra.
Qed.

(* and beats every multiple of the logarithm from some point on *)
Lemma power_beats_log p c x : 0 < p -> 1 <= x -> c <= p * p * ln x -> c * ln x <= Rpower x p.
Proof.
  intros Hp Hx H. pose proof (ln_nonneg x Hx) as HL.
  apply Rle_trans with ((p * ln x) * (p * ln x)); [nra|]. apply exp_ge_square. nra.
Qed.

Lemma ln_two_gt : / 2 < ln 2.
Proof. exact ln_lt_2. Qed.

(* ------------------------------------------------------------------------------------------------------- powers *)
Lemma Rpower_pos x p : 0 < Rpower x p.
Proof. apply exp_pos. Qed.

Lemma Rpower_le_base x y p : 0 < x -> x <= y -> 0 <= p -> Rpower x p <= Rpower y p.
Proof.
  intros Hx Hxy Hp. apply exp_le. apply Rmult_le_compat_l; [exact Hp|]. now apply ln_le.
Qed.

Lemma Rpower_ge_base x y p : 0 < x -> x <= y -> p <= 0 -> Rpower y p <= Rpower x p.
Proof.
  intros Hx Hxy Hp. apply exp_le. pose proof (ln_le x y Hx Hxy). nra.
Qed.

Lemma Rpower_le_exponent x p q : 1 <= x -> p <= q -> Rpower x p <= Rpower x q.
Proof.
  intros Hx Hpq. apply exp_le. apply Rmult_le_compat_r; [now apply ln_nonneg|exact Hpq].
Qed.

Lemma Rpower_minus_1 x : 0 < x -> Rpower x (-1) = / x.
Proof. intros H. replace (-1) with (- (1)) by ring. now rewrite Rpower_Ropp, Rpower_1. Qed.

Lemma Rpower_INR x n : 0 < x -> Rpower x (- INR n) = / x ^ n.
Proof. intros H. now rewrite Rpower_Ropp, Rpower_pow. Qed.

(* t ** p of the formula language: 0 ** p = 0 for p > 0 and 0 ** 0 = 1, while Coq's Rpower 0 p is 1 *)
Definition power (x p : R) : R := if Req_EM_T x 0 then if Req_EM_T p 0 then 1 else 0 else Rpower x p.

Lemma power_pos x p : 0 < x -> power x p = Rpower x p.
Proof. intros H. unfold power. destruct (Req_EM_T x 0); [lra|reflexivity]. Qed.

Lemma power_0 p : p <> 0 -> power 0 p = 0.
Proof. intros H. unfold power. destruct (Req_EM_T 0 0); [|lra]. now destruct (Req_EM_T p 0). Qed.

Lemma power_0_0 : power 0 0 = 1.
Proof. unfold power. destruct (Req_EM_T 0 0); [reflexivity|lra]. Qed.

Lemma power_nonneg x p : 0 <= power x p.
Proof. unfold power. destruct (Req_EM_T x 0); [destruct (Req_EM_T p 0); lra|left; apply Rpower_pos]. Qed.

(* ------------------------------------------------------------------------------------------------ limits of logs *)
Lemma is_lim_ln_seq f : is_lim_seq f p_infty -> is_lim_seq (fun n => ln (f n)) p_infty.
Proof.
  intros H. apply (is_lim_comp_seq ln f p_infty p_infty); [apply is_lim_ln_p| |exact H].
  exists 0%nat. discriminate.
Qed.

Lemma exists_INR_above (X : R) : exists N, X <= INR N.
Proof.
  exists (Z.to_nat (up X)). rewrite INR_IZR_INZ. destruct (archimed X) as [H _].
  apply Rle_trans with (IZR (up X)); [lra|]. apply IZR_le. lia.
Qed.
