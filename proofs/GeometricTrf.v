(* The exact receptive field of ALiBi, for every slope and every epsilon, ties included (erratum E22). *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Numbers Monomials Formula Fields Zoo.
Open Scope R_scope.

Lemma alibi_pos k t : 0 < alibi k t.
Proof. apply exp_pos. Qed.

(* the tail from j on is the whole sum times exp(-k j) *)
Lemma alibi_tail k j : tail (alibi k) j = exp (- k * INR j) * total (alibi k).
Proof.
  unfold tail, total. rewrite <- Series_scal_l. apply Series_ext. intros n. unfold alibi.
  rewrite <- exp_plus, plus_INR. f_equal. ring.
Qed.

Lemma alibi_sum k : 0 < k -> total (alibi k) = / (1 - exp (- k)).
Proof.
  intros Hk. assert (E : exp (- k) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
  rewrite <- (Series_geom (exp (- k))) by (rewrite Rabs_right; [exact E|left; apply exp_pos]).
  apply Series_ext. intros t. unfold alibi. rewrite <- Rpower_pow by apply exp_pos. unfold Rpower. rewrite ln_exp.
  f_equal. ring.
Qed.

Theorem alibi_trf_iff k eps n : 0 < k ->
  (is_trf (alibi k) eps (S n) <-> exp (- k * INR (S n)) < eps <= exp (- k * INR n)).
Proof.
  intros Hk. assert (Hs : ex_series (alibi k)) by now apply alibi_converges_iff.
  pose proof (total_pos (alibi k) (fun t => Rlt_le _ _ (alibi_pos k t)) (alibi_pos k 0) Hs) as P. split.
  - intros [H M]. specialize (M n ltac:(lia)). rewrite alibi_tail in H, M. split.
    + apply (Rmult_lt_reg_r (total (alibi k))); assumption.
    + apply (Rmult_le_reg_r (total (alibi k))); assumption.
  - intros [H1 H2]. apply trf_intro; [intros; left; apply alibi_pos|exact Hs| |]; rewrite alibi_tail.
    + now apply Rmult_lt_compat_r.
    + apply Rmult_le_compat_r; lra.
Qed.

(* n = floor(ln(1/eps) / k) + 1 *)
Theorem alibi_trf k eps : 0 < k -> 0 < eps <= 1 ->
  is_trf (alibi k) eps (S (Z.to_nat (Int_part (ln (/ eps) / k)))).
Proof.
  intros Hk He. set (y := ln (/ eps) / k). assert (Py : 0 <= y).
  { unfold y. apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. apply ln_nonneg. rewrite <- Rinv_1.
    apply Rinv_le_contravar; lra. }
  destruct (base_Int_part y) as [B1 B2].
  assert (Z0 : (0 <= Int_part y)%Z).
  { apply le_IZR. destruct (Z_le_gt_dec 0 (Int_part y)) as [h|h]; [now apply IZR_le|exfalso].
    assert (IZR (Int_part y) <= -1) by (apply (IZR_le _ (-1)); lia). lra. }
  assert (E : INR (Z.to_nat (Int_part y)) = IZR (Int_part y)) by (rewrite INR_IZR_INZ, Z2Nat.id; [reflexivity|exact Z0]).
  assert (Ee : eps = exp (- k * y)).
  { unfold y. replace (- k * (ln (/ eps) / k)) with (ln eps) by (rewrite ln_Rinv by lra; field; lra). symmetry. apply exp_ln. lra. }
  apply alibi_trf_iff; [exact Hk|]. rewrite S_INR, E. split.
  - rewrite Ee. apply exp_increasing. nra.
  - rewrite Ee at 1. apply exp_le. nra.
Qed.

(* a tie: the strict inequality of the definition gives one token more *)
Theorem alibi_trf_tie (q r : R) (m e : nat) : 1 < q -> 0 < r -> r * INR m = INR e ->
  is_trf (alibi (r * ln q)) (/ q ^ e) (S m).
Proof.
  intros Hq Hr H. pose proof (ln_pos q Hq) as L. apply alibi_trf_iff; [nra|].
  assert (E : / q ^ e = exp (- (r * ln q) * INR m)).
  { replace (- (r * ln q) * INR m) with (- INR e * ln q) by (rewrite <- H; ring).
    rewrite <- Rpower_INR by lra. reflexivity. }
  rewrite E. split; [|lra]. apply exp_increasing. rewrite S_INR. nra.
Qed.

(* ------------------------------------------------------------------------------------------ a checker for numbers *)
Section Check.
Variable prec : I.F.precision.

(* k is a formula without the distance *)
Definition check_alibi (k : formula) (eps : Q) (n : Z) : bool :=
  let i := enclose_at prec I.nai k in
  ipos i && (1 <=? n)%Z &&
  ineg_strict (isub prec (iexp prec (imul prec (ineg i) (iZ prec n))) (iQ prec eps)) &&
  inonneg (isub prec (iexp prec (imul prec (ineg i) (iZ prec (n - 1)))) (iQ prec eps)).

Theorem check_alibi_correct k eps n x : check_alibi k eps n = true ->
  is_trf (alibi (eval k x)) (Q2R eps) (Z.to_nat n).
Proof.
  unfold check_alibi. intros H. apply Bool.andb_true_iff in H. destruct H as [H H4].
  apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
  pose proof (enclose_at_correct prec I.nai x k (within_nai x)) as W. set (i := enclose_at prec I.nai k) in *.
  pose proof (ipos_correct _ _ H1 W) as Pk. apply Z.leb_le in H2.
  assert (E : forall m : Z, (0 <= m)%Z ->
            within (isub prec (iexp prec (imul prec (ineg i) (iZ prec m))) (iQ prec eps))
                   (exp (- eval k x * INR (Z.to_nat m)) - Q2R eps)).
  { intros m Hm. apply isub_correct; [|apply iQ_correct]. apply iexp_correct, imul_correct; [now apply ineg_correct|].
    rewrite INR_IZR_INZ, Z2Nat.id by exact Hm. apply iZ_correct. }
  replace (Z.to_nat n) with (S (Z.to_nat (n - 1))) by lia. apply alibi_trf_iff; [exact Pk|].
  replace (S (Z.to_nat (n - 1))) with (Z.to_nat n) by lia. split.
  - pose proof (ineg_strict_correct _ _ H3 (E n ltac:(lia))). lra.
  - pose proof (inonneg_correct _ _ H4 (E (n - 1)%Z ltac:(lia))). lra.
Qed.
End Check.
