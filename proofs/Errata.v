(* The errata of the paper that are mathematical claims, as theorems. The numbers are those of docs/errata.md. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder Rows Sharp Windowed Fields Zoo Numbers Formula Numeric Certificates
  PowerTails TailCheck PowerTrf QuadraticTrf GeometricTrf WindowTrf GeneralTrf Emit.
Open Scope R_scope.

(* ------------------------------------------------------------------------------------------------------- Sandwich *)
(* E1: "cos x - 1 < -1 for x >= pi/2" *)
Theorem E1_cosine_comes_back : ~ (forall x, PI / 2 <= x -> cos x - 1 < -1).
Proof.
  intros H. specialize (H (2 * PI)). rewrite cos_2PI in H. pose proof PI_RGT_0. specialize (H ltac:(lra)). lra.
Qed.

(* E2: the bound g(t) = e^k exp(-k d log_r(2t/pi)/2) of the paper, summed over t = 1, 2, ..., converges if and only if
   k d/(2 ln r) > 1: Raabe's test says the opposite of what is printed *)
Definition sandwich_bound (k d r : R) (t : R) : R := exp k * exp (- (k * d * (ln (2 * t / PI) / ln r)) / 2).

Theorem E2_raabe_direction k d r : 1 < r ->
  (ex_series (fun n => sandwich_bound k d r (INR (1 + n))) <-> 1 < k * d / (2 * ln r)).
Proof.
  intros Hr. pose proof (ln_pos r Hr) as L. set (p := k * d / (2 * ln r)).
  set (C := exp k * exp (- p * ln (2 / PI))). pose proof PI_RGT_0 as HPI.
  assert (PC : 0 < C) by (apply Rmult_lt_0_compat; apply exp_pos).
  assert (E : forall n, sandwich_bound k d r (INR (1 + n)) = C * / scale 0 p (INR (1 + n))).
  { intros n. assert (P : 0 < INR (1 + n)) by (apply lt_0_INR; lia). rewrite scale_0. unfold sandwich_bound, C.
    rewrite <- Rpower_Ropp. unfold Rpower.
    assert (A : - (k * d * (ln (2 * INR (1 + n) / PI) / ln r)) / 2 = - p * ln (2 / PI) + - p * ln (INR (1 + n))).
    { replace (2 * INR (1 + n) / PI) with (2 / PI * INR (1 + n)) by (field; lra).
      rewrite ln_mult; [|apply Rdiv_lt_0_compat; lra|exact P]. unfold p. field. lra. }
    rewrite A, exp_plus. ring. }
  assert (B := bertrand 0 p 1 ltac:(simpl; lra)). split.
  - intros H. apply B.
    assert (E' : forall n, / C * sandwich_bound k d r (INR (1 + n)) = / scale 0 p (INR (1 + n))).
    { intros n. rewrite E, <- Rmult_assoc, Rinv_l by lra. apply Rmult_1_l. }
    apply ex_series_ext with (fun n => / C * sandwich_bound k d r (INR (1 + n))).
    + exact E'.
    + exact (ex_series_scal_l (/ C) _ H).
  - intros H. apply ex_series_ext with (fun n => C * / scale 0 p (INR (1 + n))); [intros n; symmetry; apply E|].
    apply (ex_series_scal_l C (fun n => / scale 0 p (INR (1 + n)))). now apply B.
Qed.

(* E3: the sum diverges for every k, r and d *)
Theorem E3_sandwich_diverges k r d m : ~ ex_series (sandwich_paper k r d m).
Proof. apply sandwich_paper_diverges. Qed.

(* E4: at t = 0 every factor is 1, so "< 0" must read "<= 0" *)
Theorem E4_sandwich_at_0 k r d m : sandwich_paper k r d m 0 = 1.
Proof.
  unfold sandwich_paper, waves. assert (E : head (fun j => cos (INR 0 / Rpower r (2 * INR (S j) / d))) m = INR m).
  { rewrite <- (Rmult_1_r (INR m)), <- head_const. apply head_ext. intros j _. simpl (INR 0). unfold Rdiv.
    rewrite Rmult_0_l. apply cos_0. }
  rewrite E, Rminus_diag_eq, Rmult_0_r by reflexivity. apply exp_0.
Qed.

(* --------------------------------------------------------------------------------------------------------- Kerple *)
(* E5: exp(-k t^r) <= exp(-k t) is false for every r between 0 and 1, at every t >= 2 *)
Theorem E5_power_is_above k r t : 0 < k -> 0 < r < 1 -> (2 <= t)%nat -> exp (- k * INR t) < kerple_power k r t.
Proof.
  intros Hk Hr Ht. assert (P : 2 <= INR t) by (apply (le_INR 2); exact Ht). unfold kerple_power.
  rewrite power_pos by lra. apply exp_increasing. pose proof (ln_pos (INR t) ltac:(lra)) as L.
  assert (Rpower (INR t) r < INR t); [|nra].
  rewrite <- (exp_ln (INR t)) at 2 by lra. apply exp_increasing. nra.
Qed.

Theorem E5_claim_holds k r : 0 < k -> 0 < r -> ex_series (kerple_power k r).
Proof. apply kerple_power_converges. Qed.

(* E6: the clamp p >= 0.01 lets exponents through for which the sum diverges *)
Theorem E6_kerple_log_needs_more a : 0 < a -> ~ ex_series (kerple_log (1 / 100) a) /\ ~ ex_series (kerple_log 1 a).
Proof. intros Ha. split; apply kerple_log_diverges; lra. Qed.

(* --------------------------------------------------------------------------------------------------- types 1 and 2 *)
Lemma type1_paper_power t : type1_paper t = shifted_power 2 1 t.
Proof. reflexivity. Qed.

(* E7: B is pi^2/6 = 1.6449..., not 1; and the receptive field at 0.01 is 61, not 100 *)
Theorem E7_sum_of_type1 : 1.644 < total type1_paper < 1.645.
Proof.
  set (p := F.PtoP 40). assert (W : within (total_range p 2 1 20) (total (shifted_power (Q2R 2) (Q2R 1)))).
  { apply total_range_correct; [rational|rational|lia]. }
  replace (Q2R 2) with 2 in W by rational. replace (Q2R 1) with 1 in W by rational.
  change (total (shifted_power 2 1)) with (total type1_paper) in W.
  assert (A : 0 < total type1_paper - Q2R (1644 # 1000)).
  { apply (ipos_correct (isub p (total_range p 2 1 20) (iQ p (1644 # 1000)))); [vm_compute; reflexivity|].
    apply isub_correct; [exact W|apply iQ_correct]. }
  assert (B : total type1_paper - Q2R (1645 # 1000) < 0).
  { apply (ineg_strict_correct (isub p (total_range p 2 1 20) (iQ p (1645 # 1000)))); [vm_compute; reflexivity|].
    apply isub_correct; [exact W|apply iQ_correct]. }
  unfold Q2R in A, B. simpl in A, B. lra.
Qed.

Theorem E7_trf_of_type1 : is_trf type1_paper (1 / 100) 61.
Proof. apply (type1_paper_trf (F.PtoP 40) (1 # 100) 61 20); [rational|]. vm_cast_no_check (eq_refl true). Qed.

(* E7: the law is 6/(pi^2 eps) = 0.6079.../eps up to one token *)
Theorem E7_law_of_type1 eps n : 0 < eps < 1 -> is_trf type1_paper eps n ->
  0.6079 / eps - 1 < INR n < 0.6083 / eps + 1 / 2.
Proof.
  intros He [H M]. destruct E7_sum_of_type1 as [B1 B2]. set (B := total type1_paper) in *.
  assert (P0 : forall t, 0 <= type1_paper t) by (intros; left; apply exp_pos).
  assert (Hs : ex_series type1_paper) by exact type1_paper_converges.
  assert (N1 : (1 <= n)%nat).
  { destruct n; [exfalso|lia]. pose proof (head_tail type1_paper 0 Hs) as T. simpl in T. fold B in T. nra. }
  assert (T : forall j, 1 / (INR j + 1) <= tail type1_paper j /\ ((1 <= j)%nat -> tail type1_paper j <= 1 / (INR j + 1 / 2))).
  { intros j. pose proof (pos_INR j) as Pj.
    assert (W : forall n, 0 <= INR n) by apply pos_INR.
    assert (E : forall m, type1_paper m = / ((INR m + 1) * (INR m + 1))).
    { intros m. unfold type1_paper. replace (-2) with (- INR 2) by (simpl; ring).
      change (exp (- INR 2 * ln (INR m + 1))) with (Rpower (INR m + 1) (- INR 2)).
      rewrite Rpower_INR by (specialize (W m); lra). f_equal. simpl. ring. }
    assert (Ej : ex_series (fun m => type1_paper (j + m))) by now apply ex_series_from.
    assert (L : forall c, is_lim_seq (fun m => / (INR m + c)) 0).
    { intros c. replace (Finite 0) with (Rbar_inv p_infty) by reflexivity. apply is_lim_seq_inv; [|discriminate].
      apply (is_lim_seq_plus _ _ p_infty c); [apply is_lim_seq_INR|apply is_lim_seq_const|reflexivity]. }
    split.
    - pose proof (series_ge_telescope _ (fun m => / (INR m + (INR j + 1))) Ej (L _)) as S. cbv beta in S.
      change (INR 0) with 0 in S. rewrite Rplus_0_l in S. unfold Rdiv. rewrite Rmult_1_l. apply S.
      intros m. rewrite E, S_INR, plus_INR. specialize (W m). set (z := INR m + (INR j + 1)).
      replace (INR j + INR m + 1) with z by (unfold z; ring). replace (INR m + 1 + (INR j + 1)) with (z + 1) by (unfold z; ring).
      assert (Pz : 1 <= z) by (unfold z; lra). apply Rminus_le_0.
      replace (/ (z * z) - (/ z - / (z + 1))) with (/ (z * z * (z + 1))) by (field; lra).
      left. apply Rinv_0_lt_compat. repeat apply Rmult_lt_0_compat; lra.
    - intros Hj. pose proof (INR_ge_1 j Hj).
      pose proof (series_le_telescope_lim _ (fun m => / (INR m + (INR j + 1 / 2))) Ej (L _)) as S. cbv beta in S.
      change (INR 0) with 0 in S. rewrite Rplus_0_l in S. unfold Rdiv at 1. rewrite Rmult_1_l. apply S.
      intros m. rewrite E, S_INR, plus_INR. specialize (W m). set (z := INR m + (INR j + 1)).
      replace (INR j + INR m + 1) with z by (unfold z; ring). replace (INR m + (INR j + 1 / 2)) with (z - 1 / 2) by (unfold z; field).
      replace (INR m + 1 + (INR j + 1 / 2)) with (z + 1 / 2) by (unfold z; field).
      assert (Pz : 1 <= z) by (unfold z; lra). apply Rminus_le_0.
      replace (/ (z - 1 / 2) - / (z + 1 / 2) - / (z * z)) with (/ (4 * (z * z) * ((z - 1 / 2) * (z + 1 / 2)))) by (field; lra).
      left. apply Rinv_0_lt_compat. repeat apply Rmult_lt_0_compat; lra. }
  pose proof (pos_INR n) as Pn. destruct (T n) as [Tl _]. split.
  - assert (K : 1 / (INR n + 1) < eps * 1.645) by nra.
    apply (Rmult_lt_compat_r (INR n + 1)) in K; [|lra]. unfold Rdiv in K at 1. rewrite Rmult_1_l, Rinv_l in K by lra.
    apply (Rmult_lt_reg_r eps); [lra|]. replace ((0.6079 / eps - 1) * eps) with (0.6079 - eps) by (field; lra). nra.
  - destruct (Nat.eq_dec n 1) as [->|N].
    + simpl. assert (/ 1 < / eps) by (apply Rinv_lt_contravar; lra). rewrite Rinv_1 in H0. unfold Rdiv. lra.
    + destruct (T (n - 1)%nat) as [_ Tu]. specialize (Tu ltac:(lia)). specialize (M (n - 1)%nat ltac:(lia)).
      rewrite minus_INR in Tu by lia. simpl (INR 1) in Tu. replace (INR n - 1 + 1 / 2) with (INR n - 1 / 2) in Tu by field.
      assert (N2 : 2 <= INR n) by (apply (le_INR 2); lia).
      assert (K : eps * 1.644 < 1 / (INR n - 1 / 2)) by nra.
      apply (Rmult_lt_compat_r (INR n - 1 / 2)) in K; [|lra]. unfold Rdiv in K at 2. rewrite Rmult_1_l, Rinv_l in K by lra.
      apply (Rmult_lt_reg_r eps); [lra|]. replace ((0.6083 / eps + 1 / 2) * eps) with (0.6083 + eps / 2) by (field; lra). nra.
Qed.

(* E8: the offset changes the shape: 1/(t+a)^2 has the fields 61, 154, 251 at 0.01 for a = 1, 2, 3 *)
Theorem E8_offset_matters : is_trf (shifted_power 2 1) (1 / 100) 61 /\ is_trf (shifted_power 2 2) (1 / 100) 154 /\
  is_trf (shifted_power 2 3) (1 / 100) 251.
Proof.
  assert (Q : forall (c : Q) (n : Z), check_power (F.PtoP 40) 2 c (1 # 100) n 20 = true ->
              is_trf (shifted_power 2 (Q2R c)) (1 / 100) (Z.to_nat n)).
  { intros c n H. pose proof (check_power_correct (F.PtoP 40) 2 c (1 # 100) n 20 H) as T.
    replace (Q2R 2) with 2 in T by rational. replace (Q2R (1 # 100)) with (1 / 100) in T by rational. exact T. }
  split; [|split].
  - replace 1 with (Q2R 1) at 1 by rational. apply (Q 1%Q 61%Z). vm_cast_no_check (eq_refl true).
  - replace 2 with (Q2R 2) at 2 by rational. apply (Q 2%Q 154%Z). vm_cast_no_check (eq_refl true).
  - replace 3 with (Q2R 3) at 1 by rational. apply (Q 3%Q 251%Z). vm_cast_no_check (eq_refl true).
Qed.

(* E9: at epsilon 0.5 the receptive field of type 2 is 2, that of type 1 is 1 *)
Definition type2_certificate : certificate := Certificate Upper 0 4 (9 # 2) (At 4).

Lemma type2_certified : certifies type2_certificate type2_paper.
Proof. certify 40%positive. Qed.

Theorem E9_type2_is_wider : is_trf type1_paper (1 / 2) 1 /\ is_trf type2_paper (1 / 2) 2.
Proof.
  split.
  - apply (type1_paper_trf (F.PtoP 40) (1 # 2) 1 10); [rational|]. vm_cast_no_check (eq_refl true).
  - replace (1 / 2) with (Q2R (1 # 2)) by rational. let e := weight_formula type2_paper in
    apply (check_general_correct (F.PtoP 40) type2_certificate e type2_paper (1 # 2) 2 40
             (fun t => eq_refl) (fun t => Rlt_le _ _ (exp_pos _)) type2_certified).
    vm_cast_no_check (eq_refl true).
Qed.

(* E9: what is true of the claim: for all small epsilon the field of type 2 is not the larger one *)
Theorem E9_narrower_in_the_end : exists eps0, 0 < eps0 /\ forall eps i j, eps <= eps0 ->
  is_trf type2_paper eps i -> is_trf type1_paper eps j -> (i <= j)%nat.
Proof.
  assert (P1 : forall t, 0 <= type1_paper t) by (intros; left; apply exp_pos).
  assert (P2 : forall t, 0 <= type2_paper t) by (intros; left; apply exp_pos).
  pose proof type1_paper_converges as S1. pose proof type2_paper_converges as S2.
  pose proof (total_pos type1_paper P1 (exp_pos _) S1) as B1. pose proof (total_pos type2_paper P2 (exp_pos _) S2) as B2.
  set (q := total type2_paper / total type1_paper). assert (Pq : 0 < q) by now apply Rdiv_lt_0_compat.
  destruct (logs_eventually 1 (3 + Rabs (ln q))) as [N HN]. set (t0 := S N).
  exists (tail type1_paper (t0 - 1) / total type1_paper). split.
  - apply Rdiv_lt_0_compat; [|exact B1]. rewrite tail_step by exact S1.
    pose proof (tail_nonneg type1_paper (S (t0 - 1)) P1 S1). pose proof (exp_pos (-2 * ln (INR (t0 - 1) + 1))).
    unfold type1_paper at 1. lra.
  - intros eps i j He Hi Hj.
    apply (comparison_small_eps type2_paper type1_paper t0 P2 P1 S1 B2 B1) with eps; try assumption; [|unfold t0; lia].
    intros t Ht. apply (Rmult_le_reg_r (total type2_paper)); [exact B2|].
    replace (type2_paper t / total type2_paper * total type2_paper) with (type2_paper t) by (field; lra).
    replace (type1_paper t / total type1_paper * total type2_paper) with (type1_paper t * q) by (unfold q; field; lra).
    unfold type2_paper, type1_paper. rewrite <- (exp_ln q Pq), <- exp_plus. apply exp_le.
    specialize (HN t ltac:(unfold t0 in Ht; lia)). simpl in HN.
    assert (Pt : 0 < INR t) by (apply lt_0_INR; unfold t0 in Ht; lia).
    assert (L : ln (INR t) <= ln (INR t + 1)) by (apply ln_le; lra). set (l := ln (INR t + 1)) in *.
    pose proof (Rle_abs (- ln q)) as A. rewrite Rabs_Ropp in A. pose proof (Rabs_pos (ln q)).
    assert (3 + Rabs (ln q) <= l) by lra. simpl. nra.
Qed.

(* E10: printed and trained form are not the same: at 0.01 the fields are 61 as printed, 111 and 16277 as trained *)
Theorem E10_trained_form : is_trf (type1 (1 / 2)) (1 / 100) 111 /\ is_trf (type1 (1 / 256)) (1 / 100) (Z.to_nat 16277).
Proof.
  split.
  - apply (type1_trf (F.PtoP 40) 4 (1 # 100) 3 111 20); [rational|rational|]. vm_cast_no_check (eq_refl true).
  - apply (type1_trf (F.PtoP 60) 65536 (1 # 100) 257 16277 300); [rational|rational|]. vm_cast_no_check (eq_refl true).
Qed.

(* -------------------------------------------------------------------------------------------------------- windows *)
(* E11: the mask i - j <= w keeps w + 1 tokens *)
Theorem E11_window_is_one_too_wide w : total (window_paper w) = INR w + 1.
Proof.
  rewrite <- S_INR, <- window_total. apply Series_ext. intros t. reflexivity.
Qed.

(* ------------------------------------------------------------------------------------- the lemma and theorems 1, 2 *)
(* E14: with the printed sign the identity fails *)
Theorem E14_sign : exists (c v : nat -> R), (forall t, 0 < c t) /\
  minus (output (E := R_NormedModule) c v 2) (output (E := R_NormedModule) c v 1)
  <> outside_share c 1 2 * (output (E := R_NormedModule) c v 1 - outside_mean (E := R_NormedModule) c v 1 2).
Proof.
  exists (fun _ => 1), (fun t => INR t). split; [intros; lra|].
  unfold output, outside_mean, outside_share, weighted, minus, plus, opp, scal, mult. simpl.
  unfold mult, zero, plus, scal, mult. simpl. lra.
Qed.

(* E15: C_ii may tend to a limit and yet no window serves all rows: weight 1 on the farthest token, 1/1000 on the rest *)
Definition far_row (i t : nat) : R := if Nat.eqb t (i - 1) then 1 else / 1000 / INR (i - 1).

Lemma far_row_head i j : (2 <= i)%nat -> (j < i)%nat -> head (far_row i) j = INR j * (/ 1000 / INR (i - 1)).
Proof.
  intros Hi Hj. rewrite <- head_const. apply head_ext. intros t Ht. unfold far_row.
  replace (Nat.eqb t (i - 1)) with false by (symmetry; apply Nat.eqb_neq; lia). reflexivity.
Qed.

Lemma far_row_total i : (2 <= i)%nat -> head (far_row i) i = 1001 / 1000.
Proof.
  intros Hi. assert (P : 0 < INR (i - 1)) by (apply lt_0_INR; lia).
  replace (head (far_row i) i) with (head (far_row i) (i - 1) + far_row i (i - 1)).
  - rewrite far_row_head by lia. unfold far_row. rewrite Nat.eqb_refl. field. lra.
  - transitivity (head (far_row i) (S (i - 1))); [reflexivity|f_equal; lia].
Qed.

Theorem E15_limit_is_not_enough :
  (forall i t, (2 <= i)%nat -> 0 < far_row i t) /\
  is_lim_seq (fun i => head (far_row i) i) (1001 / 1000) /\
  (forall i j, (1 <= j)%nat -> (j < i)%nat -> 99 / 100 < outside_share (far_row i) j i).
Proof.
  split; [|split].
  - intros i t Hi. unfold far_row. destruct (Nat.eqb t (i - 1)); [lra|].
    apply Rdiv_lt_0_compat; [lra|apply lt_0_INR; lia].
  - apply is_lim_seq_ext_loc with (fun _ => 1001 / 1000); [|apply is_lim_seq_const].
    exists 2%nat. intros i Hi. symmetry. now apply far_row_total.
  - intros i j Hj Hji. assert (P : 0 < INR (i - 1)) by (apply lt_0_INR; lia).
    assert (J : INR j <= INR (i - 1)) by (apply le_INR; lia).
    unfold outside_share. rewrite far_row_total, far_row_head by lia.
    assert (Q : INR j / INR (i - 1) <= 1).
    { apply (Rmult_le_reg_r (INR (i - 1))); [exact P|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    replace (1 - INR j * (/ 1000 / INR (i - 1)) / (1001 / 1000)) with (1 - INR j / INR (i - 1) * / 1001) by (field; lra).
    lra.
Qed.

(* E16: lim C_ii need not exist although B is finite: logits of alternating sign on ALiBi *)
Definition alternating_total (i : nat) : R := head (weights (alibi 1) (fun _ => (-1) ^ i)) i.

Theorem E16_limit_need_not_exist : ex_series (alibi 1) /\ ~ ex_finite_lim_seq alternating_total.
Proof.
  assert (Hs : ex_series (alibi 1)) by (apply alibi_converges_iff; lra). split; [exact Hs|].
  assert (P : 0 < total (alibi 1)) by (apply total_pos; [intros; left; apply exp_pos|apply exp_pos|exact Hs]).
  assert (E : forall i, alternating_total i = exp ((-1) ^ i) * head (alibi 1) i) by (intros i; exact (head_scal (exp ((-1) ^ i)) (alibi 1) i)).
  intros [l L].
  assert (Even : is_lim_seq (fun n => alternating_total (2 * n)) (exp 1 * total (alibi 1))).
  { apply is_lim_seq_ext with (fun n => exp 1 * head (alibi 1) (2 * n)).
    - intros n. rewrite E, pow_1_even. reflexivity.
    - apply (is_lim_seq_scal_l _ (exp 1) (total (alibi 1))).
      apply (is_lim_seq_subseq (head (alibi 1)) (total (alibi 1)) (fun n => (2 * n)%nat)); [|now apply is_lim_head].
      apply eventually_subseq. intros n. lia. }
  assert (Odd : is_lim_seq (fun n => alternating_total (S (2 * n))) (exp (-1) * total (alibi 1))).
  { apply is_lim_seq_ext with (fun n => exp (-1) * head (alibi 1) (S (2 * n))).
    - intros n. rewrite E, pow_1_odd. reflexivity.
    - apply (is_lim_seq_scal_l _ (exp (-1)) (total (alibi 1))).
      apply (is_lim_seq_subseq (head (alibi 1)) (total (alibi 1)) (fun n => S (2 * n)%nat)); [|now apply is_lim_head].
      apply eventually_subseq. intros n. lia. }
  assert (L1 : is_lim_seq (fun n => alternating_total (2 * n)) l).
  { apply (is_lim_seq_subseq alternating_total l (fun n => (2 * n)%nat)); [|exact L]. apply eventually_subseq. intros n. lia. }
  assert (L2 : is_lim_seq (fun n => alternating_total (S (2 * n))) l).
  { apply (is_lim_seq_subseq alternating_total l (fun n => S (2 * n)%nat)); [|exact L]. apply eventually_subseq. intros n. lia. }
  apply is_lim_seq_unique in Even. apply is_lim_seq_unique in Odd. apply is_lim_seq_unique in L1. apply is_lim_seq_unique in L2.
  rewrite L1 in Even. rewrite L2 in Odd. injection Even as E1. injection Odd as E2.
  assert (exp (-1) < exp 1) by (apply exp_increasing; lra). nra.
Qed.

(* E17: logit_bound in Windowed.v *)
(* E18: C_ij is not below B_ij (but below e^M B_ij), and the share does not see a common factor *)
Theorem E18_no_upper_bound b j n : (forall t, 0 <= b t) -> 0 < b 0%nat -> (1 <= j)%nat ->
  head b j < head (weights b (fun _ => 1)) j /\ outside_share (weights b (fun _ => 1)) j n = outside_share b j n.
Proof.
  intros Hb H0 Hj.
  assert (E : forall i, head (weights b (fun _ => 1)) i = exp 1 * head b i) by (intros i; exact (head_scal (exp 1) b i)).
  pose proof (head_pos b j Hb H0 Hj) as P. pose proof (exp_ge_tangent 1) as E1.
  split; [rewrite E; nra|]. unfold outside_share. rewrite !E. f_equal.
  unfold Rdiv. rewrite Rinv_mult. replace (exp 1 * head b j * (/ exp 1 * / head b n))
    with (exp 1 * / exp 1 * (head b j * / head b n)) by ring. rewrite Rinv_r by lra. ring.
Qed.

Theorem E18_right_bound b s M j : (forall t, 0 <= b t) -> (forall t, Rabs (s t) <= M) ->
  head (weights b s) j <= exp M * head b j.
Proof.
  intros Hb Hs. rewrite <- head_scal. apply head_le. intros t _. apply Rmult_le_compat_r; [apply Hb|].
  apply exp_le. specialize (Hs t). apply Rabs_le_between in Hs. lra.
Qed.

(* ------------------------------------------------------------------------------------------------------- theorem 3 *)
(* E21: where a weight is 0 no epsilon has its receptive field, so the paper's choice of epsilon_0 need not exist *)
Theorem E21_field_may_not_exist b t : (forall t, 0 <= b t) -> ex_series b -> b t = 0 -> forall eps, ~ is_trf b eps (S t).
Proof.
  intros Hb Hs H0 eps [H M]. specialize (M t ltac:(lia)). pose proof (tail_step b t Hs) as T. lra.
Qed.

(* E21: "the smaller the series, the smaller the TRF" is false: 0.01 times type 2 lies below type 1 everywhere *)
Theorem E21_smaller_series_wider_field :
  (forall t, / 100 * type2_paper t < type1_paper t) /\
  is_trf (fun t => / 100 * type2_paper t) (1 / 2) 2 /\ is_trf type1_paper (1 / 2) 1.
Proof.
  destruct E9_type2_is_wider as [T1 T2]. split; [|split; [|exact T1]].
  - intros t. unfold type2_paper, type1_paper. set (L := ln (INR t + 1)).
    assert (A : exp (- L ^ 2) <= exp 1 * exp (-2 * L)).
    { rewrite <- exp_plus. apply exp_le. pose proof (Rle_0_sqr (L - 1)) as S. unfold Rsqr in S. simpl. lra. }
    assert (P : 0 < exp (-2 * L)) by apply exp_pos. pose proof exp_le_3. nra.
  - apply trf_scale; [lra|exact T2].
Qed.

(* ----------------------------------------------------------------------------------------------------- ALiBi, ties *)
(* E22: k = ln 2, epsilon = 1/8: the tie gives 4 and not 3; the slopes 1/2 and 1/256 give 10 and 1179 at 0.01 *)
Theorem E22_tie : is_trf (alibi (ln 2)) (1 / 8) 4.
Proof.
  replace (ln 2) with (1 * ln 2) by ring. replace (1 / 8) with (/ 2 ^ 3) by (simpl; lra).
  apply alibi_trf_tie; simpl; lra.
Qed.

Theorem E22_slopes : is_trf (alibi (1 / 2)) (1 / 100) 10 /\ is_trf (alibi (1 / 256)) (1 / 100) (Z.to_nat 1179).
Proof.
  assert (G : forall (k : formula) (n : Z), check_alibi (F.PtoP 40) k (1 # 100) n = true ->
              is_trf (alibi (eval k 0)) (1 / 100) (Z.to_nat n)).
  { intros k n H. replace (1 / 100) with (Q2R (1 # 100)) by rational. now apply check_alibi_correct with (F.PtoP 40). }
  split.
  - apply (G (Div (Int 1) (Int 2)) 10%Z). vm_cast_no_check (eq_refl true).
  - apply (G (Div (Int 1) (Int 256)) 1179%Z). vm_cast_no_check (eq_refl true).
Qed.

(* E23: at a tie the comparison that is not strict stops one token early: a window of 100 at 1/2 needs 51 *)
Theorem E23_tie_of_a_window : is_trf (window 100) (1 / 2) 51 /\ tail (window 100) 50 = 1 / 2 * total (window 100).
Proof.
  split.
  - apply window_trf_iff; [lia|]. rewrite !INR_IZR_INZ. simpl. lra.
  - rewrite window_tail, window_total by lia. rewrite !INR_IZR_INZ. simpl. lra.
Qed.
