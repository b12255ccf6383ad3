(* The upper envelopes of the zoo's classes of biases, and its other encodings of models that people run, for all
   parameters. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Formula Zoo.
Open Scope R_scope.

(* cable, rwkv: -t*between(low, high) stays below -t*low *)
Theorem decay_converges_iff k : ex_series (fun t => exp (- INR t * k)) <-> 0 < k.
Proof.
  rewrite <- alibi_converges_iff. split; intros H; apply ex_series_ext with (2 := H); intros t; unfold alibi; f_equal; ring.
Qed.

(* retnet; fox: t*log(between(low, high)) stays below t*log(high) *)
Theorem retention_converges_iff g : 0 < g -> (ex_series (fun t => exp (INR t * ln g)) <-> g < 1).
Proof.
  intros Hg. assert (E : ex_series (fun t => exp (INR t * ln g)) <-> 0 < - ln g).
  { rewrite <- alibi_converges_iff. split; intros H; apply ex_series_ext with (2 := H); intros t; unfold alibi; f_equal; ring. }
  rewrite E. split; intros H.
  - destruct (Rlt_or_le g 1) as [h|h]; [exact h|]. pose proof (ln_nonneg g h). lra.
  - pose proof (ln_increasing g 1 Hg H) as L. rewrite ln_1 in L. lra.
Qed.

(* dape, mlp: -k*t + between(-m, m) *)
Theorem shifted_alibi_converges k m : 0 < k -> ex_series (fun t => exp (- k * INR t + m)).
Proof.
  intros Hk. apply ex_series_ext with (fun t => exp m * alibi k t).
  - intros t. unfold alibi. rewrite exp_plus. apply Rmult_comm.
  - apply (ex_series_scal (exp m) (alibi k)). now apply alibi_converges_iff.
Qed.

(* fire, cope: between(-m, m) *)
Theorem constant_diverges m : ~ ex_series (fun t : nat => exp m).
Proof. apply (constant_tail_diverges (fun _ => m) m 0). reflexivity. Qed.

Theorem dilated_window_converges w d : ex_series (fun t =>
  if Rlt_dec (INR t) (w * d) then if Rlt_dec (INR t - d * floor (INR t / d)) 1 then exp 0 else 0 else 0).
Proof.
  destruct (exists_INR_above (w * d)) as [N HN]. apply (ex_series_finite _ N). intros t Ht. apply le_INR in Ht.
  destruct (Rlt_dec (INR t) (w * d)); [lra|reflexivity].
Qed.

(* bipe: at most -k*floor(t/m) *)
Theorem segments_converge k m : 0 < k -> 1 <= m -> ex_series (fun t => exp (- k * floor (INR t / m))).
Proof.
  intros Hk Hm. apply (ex_series_below _ (fun t => exp (- (k / m) * INR t + k)) 0).
  - intros t _. split; [left; apply exp_pos|]. apply exp_le. destruct (base_Int_part (INR t / m)) as [_ B].
    unfold floor. set (f := IZR (Int_part (INR t / m))) in *.
    replace (- (k / m) * INR t + k) with (- k * (INR t / m - 1)) by (field; lra). nra.
  - apply shifted_alibi_converges. apply Rdiv_lt_0_compat; lra.
Qed.

(* xpos: at most m*exp(-g*t) *)
Theorem shrinking_diverges m g : 0 < m -> ~ ex_series (fun t => exp (m * exp (- g * INR t))).
Proof.
  intros Hm. apply (diverges_constant _ 1 0 Rlt_0_1). intros t _. rewrite <- exp_0 at 1. apply exp_le.
  apply Rmult_le_pos; [lra|]. left. apply exp_pos.
Qed.
