(* The exact receptive field of a window: floor(w (1 - eps)) + 1 of its w tokens. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Fields Zoo.
Open Scope R_scope.

Lemma window_nonneg w t : 0 <= window w t.
Proof. unfold window. destruct (Nat.ltb t w); lra. Qed.

Lemma window_head w j : head (window w) j = INR (Nat.min j w).
Proof.
  induction j as [|j IH]; [reflexivity|]. cbn [head]. rewrite IH. unfold window. destruct (Nat.ltb j w) eqn:E.
  - apply Nat.ltb_lt in E. rewrite Nat.min_l, Nat.min_l, S_INR by lia. reflexivity.
  - apply Nat.ltb_ge in E. rewrite !Nat.min_r by lia. ring.
Qed.

Lemma window_total w : total (window w) = INR w.
Proof.
  assert (L : is_lim_seq (head (window w)) (INR w)).
  { apply is_lim_seq_ext_loc with (fun _ => INR w); [|apply is_lim_seq_const].
    exists w. intros n Hn. rewrite window_head, Nat.min_r by exact Hn. reflexivity. }
  pose proof (is_lim_head (window w) (window_converges w)) as T.
  apply is_lim_seq_unique in L. apply is_lim_seq_unique in T. rewrite L in T. now injection T.
Qed.

Lemma window_tail w j : (j <= w)%nat -> tail (window w) j = INR w - INR j.
Proof.
  intros Hj. pose proof (head_tail (window w) j (window_converges w)) as T.
  rewrite window_total, window_head, Nat.min_l in T by exact Hj. lra.
Qed.

Theorem window_trf_iff w eps n : (n < w)%nat ->
  (is_trf (window w) eps (S n) <-> INR w - INR (S n) < eps * INR w <= INR w - INR n).
Proof.
  intros Hn. split.
  - intros [H M]. specialize (M n ltac:(lia)). rewrite window_total in H, M. rewrite window_tail in H, M by lia. lra.
  - intros [H1 H2]. apply trf_intro; [apply window_nonneg|apply window_converges| |];
      rewrite window_total, window_tail by lia; assumption.
Qed.

Theorem window_trf w eps : (1 <= w)%nat -> 0 < eps <= 1 ->
  is_trf (window w) eps (S (Z.to_nat (Int_part (INR w * (1 - eps))))).
Proof.
  intros Hw He. assert (Pw : 1 <= INR w) by now apply INR_ge_1. set (y := INR w * (1 - eps)).
  assert (Py : 0 <= y < INR w) by (unfold y; nra). destruct (base_Int_part y) as [B1 B2].
  assert (Z0 : (0 <= Int_part y)%Z).
  { apply le_IZR. destruct (Z_le_gt_dec 0 (Int_part y)) as [h|h]; [now apply IZR_le|exfalso].
    assert (IZR (Int_part y) <= -1) by (apply (IZR_le _ (-1)); lia). lra. }
  assert (E : INR (Z.to_nat (Int_part y)) = IZR (Int_part y)) by (rewrite INR_IZR_INZ, Z2Nat.id; [reflexivity|exact Z0]).
  apply window_trf_iff.
  - apply INR_lt. rewrite E. lra.
  - rewrite S_INR, E. unfold y in *. lra.
Qed.

(* ---------------------------------------------------------------------------------------------- a checker for numbers *)
Definition check_window (w : Z) (eps : Q) (n : Z) : bool :=
  (1 <=? n)%Z && (n <=? w)%Z && negb (Qle_bool (eps * inject_Z w) (inject_Z (w - n))) &&
  Qle_bool (eps * inject_Z w) (inject_Z (w - (n - 1))).

Lemma Q2R_Z z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R. simpl. field. Qed.

Theorem check_window_correct w eps n : check_window w eps n = true ->
  is_trf (window_mask (IZR w)) (Q2R eps) (Z.to_nat n).
Proof.
  unfold check_window. intros H. apply Bool.andb_true_iff in H. destruct H as [H H4].
  apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
  apply Z.leb_le in H1, H2. apply Qle_bool_iff, Qle_Rle in H4. rewrite Q2R_mult, !Q2R_Z in H4.
  assert (L : IZR (w - n) < Q2R eps * IZR w).
  { apply Bool.negb_true_iff in H3. destruct (Qlt_le_dec (inject_Z (w - n)) (eps * inject_Z w)) as [h|h].
    - apply Qlt_Rlt in h. rewrite Q2R_mult, !Q2R_Z in h. exact h.
    - apply Qle_bool_iff in h. congruence. }
  assert (E : forall z : Z, (0 <= z)%Z -> INR (Z.to_nat z) = IZR z).
  { intros z Hz. rewrite INR_IZR_INZ, Z2Nat.id by exact Hz. reflexivity. }
  apply (trf_ext (window (Z.to_nat w))).
  - intros t. rewrite <- window_mask_nat, E by lia. reflexivity.
  - replace (Z.to_nat n) with (S (Z.to_nat (n - 1))) by lia. apply window_trf_iff; [lia|].
    replace (S (Z.to_nat (n - 1))) with (Z.to_nat n) by lia. rewrite !E by lia. rewrite !minus_IZR in *. lra.
Qed.

(* the printed mask keeps one token more *)
Lemma window_paper_mask_int w t : window_mask (IZR (w + 1)) t = window_paper_mask (IZR w) t.
Proof.
  unfold window_mask, window_paper_mask. rewrite INR_IZR_INZ.
  destruct (Rlt_dec (IZR (Z.of_nat t)) (IZR (w + 1))) as [h|h], (Rle_dec (IZR (Z.of_nat t)) (IZR w)) as [g|g]; try reflexivity; exfalso.
  - apply g, IZR_le. apply lt_IZR in h. lia.
  - apply h, IZR_lt. apply le_IZR in g. lia.
Qed.

Theorem check_paper_window_correct w eps n : check_window (w + 1) eps n = true ->
  is_trf (window_paper_mask (IZR w)) (Q2R eps) (Z.to_nat n).
Proof. intros H. apply (trf_ext (window_mask (IZR (w + 1)))); [apply window_paper_mask_int|now apply check_window_correct]. Qed.
