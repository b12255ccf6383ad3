(* The exact receptive field of type 1 as trained, 1 / (1 + (k t)^2).

   It is a constant times 1 / (t^2 + c2) with c2 = 1/k^2. With T_kappa(y) = atan(kappa/y)/kappa,
       T_kappa(y) - T_kappa(y+1) <= 1/((y + 1/2)^2 + c2)   for kappa^2 = c2 + 1/4,
       T_kappa(y) - T_kappa(y+1) >= 1/((y + 1/2)^2 + c2)   for kappa^2 = c2, once (y + 1/2)^2 >= c2 + 1/8,
   so the tail telescopes from both sides. Far beyond sqrt c2 the powers of QuadraticTails.v are closer. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder Numbers Monomials Formula Fields TailCheck Zoo QuadraticTails.
Open Scope R_scope.

Definition arc (k y : R) : R := atan (k / y) / k.

Lemma derive_arc k y : 0 < k -> 0 < y -> is_derive (arc k) y (- / (y * y + k * k)).
Proof.
  intros Hk Hy. unfold arc.
  assert (A : is_derive (fun y => atan (k / y)) y (- (k / (y * y)) * / (1 + (k / y) ^ 2))).
  { apply (is_derive_comp atan (fun y => k / y) y (/ (1 + (k / y) ^ 2)) (- (k / (y * y)))).
    - apply is_derive_Reals, derivable_pt_lim_atan.
    - auto_derive; [lra|]. field. lra. }
  apply is_derive_ext with (fun y => / k * atan (k / y)); [intros; unfold Rdiv; apply Rmult_comm|].
  replace (- / (y * y + k * k)) with (/ k * (- (k / (y * y)) * / (1 + (k / y) ^ 2))).
  - apply (is_derive_scal (fun y => atan (k / y)) y (/ k)). exact A.
  - field. repeat split; nra.
Qed.

Lemma is_lim_arc k y0 : 0 < k -> is_lim_seq (fun n => arc k (INR n + y0)) 0.
Proof.
  intros Hk. unfold arc. replace (Finite 0) with (Finite (atan 0 * / k)) by (rewrite atan_0; f_equal; ring).
  apply (is_lim_seq_scal_r _ (/ k) (atan 0)).
  apply (is_lim_seq_continuous atan (fun n => k / (INR n + y0)) 0).
  - apply derivable_continuous_pt, derivable_pt_atan.
  - replace (Finite 0) with (Finite (k * 0)) by (f_equal; ring). apply (is_lim_seq_scal_l _ k 0).
    replace (Finite 0) with (Rbar_inv p_infty) by reflexivity. apply is_lim_seq_inv; [|discriminate].
    apply (is_lim_seq_plus _ _ p_infty y0); [apply is_lim_seq_INR|apply is_lim_seq_const|reflexivity].
Qed.

(* a function that falls to 0 is not negative *)
Lemma falls_to_0 (f f1 : R -> R) y : (forall w, y <= w -> is_derive f w (f1 w)) -> (forall w, y <= w -> f1 w <= 0) ->
  is_lim_seq (fun n => f (INR n + y)) 0 -> 0 <= f y.
Proof.
  intros D N L. assert (Rbar_le 0 (f y)) as K; [|exact K].
  apply (is_lim_seq_le (fun n => f (INR n + y)) (fun _ => f y)); [|exact L|apply is_lim_seq_const].
  intros n. pose proof (pos_INR n) as Hn. destruct (Req_dec (INR n) 0) as [->|P]; [rewrite Rplus_0_l; lra|].
  destruct (MVT_cor2 f f1 y (INR n + y) ltac:(lra)) as [w [E B]].
  - intros w Hw. apply is_derive_Reals. apply D. lra.
  - specialize (N w ltac:(lra)). nra.
Qed.

Definition quadratic (c2 : R) (t : nat) : R := / (INR t * INR t + c2).

Section Quadratic.
Variable c2 : R.
Hypothesis Hc : 0 < c2.

Lemma quadratic_converges : ex_series (quadratic c2).
Proof.
  apply (power_converges _ 1 2 1 ltac:(lra) Rlt_0_1). intros t Ht. unfold quadratic.
  rewrite Rabs_right by (left; apply Rinv_0_lt_compat; nra).
  replace (Ropp 2) with (- INR 2) by (simpl; ring). rewrite Rpower_INR by lra. rewrite Rmult_1_l.
  apply Rinv_le_contravar; simpl; nra.
Qed.

(* the product of two values half a step away *)
Lemma neighbours z k2 : ((z - / 2) * (z - / 2) + k2) * ((z + / 2) * (z + / 2) + k2)
  = (z * z + k2) * (z * z + k2) - z * z / 2 + k2 / 2 + / 16.
Proof. field. Qed.

Definition defect (k y : R) : R := arc k y - arc k (y + 1) - / ((y + / 2) * (y + / 2) + c2).
Definition defect1 (k y : R) : R :=
  2 * (y + / 2) * (/ (((y + / 2) * (y + / 2) + c2) * ((y + / 2) * (y + / 2) + c2))
                   - / ((y * y + k * k) * ((y + 1) * (y + 1) + k * k))).

Lemma derive_defect k y : 0 < k -> 0 < y -> is_derive (defect k) y (defect1 k y).
Proof.
  intros Hk Hy. assert (Q : 0 < (y + / 2) * (y + / 2) + c2) by nra.
  assert (D1 := derive_arc k y Hk Hy). assert (D2 := derive_arc k (y + 1) Hk ltac:(lra)).
  assert (D3 : is_derive (fun y => arc k (y + 1)) y (1 * - / ((y + 1) * (y + 1) + k * k))).
  { apply (is_derive_comp (arc k) (fun y => y + 1) y _ 1); [exact D2|]. auto_derive; [exact Logic.I|ring]. }
  assert (D4 : is_derive (fun y => / ((y + / 2) * (y + / 2) + c2)) y
                 (- (2 * (y + / 2)) / (((y + / 2) * (y + / 2) + c2) * ((y + / 2) * (y + / 2) + c2)))).
  { auto_derive; [nra|]. field. nra. }
  replace (defect1 k y) with (- / (y * y + k * k) - 1 * - / ((y + 1) * (y + 1) + k * k)
     - (- (2 * (y + / 2)) / (((y + / 2) * (y + / 2) + c2) * ((y + / 2) * (y + / 2) + c2)))).
  - apply (is_derive_minus (fun y => arc k y - arc k (y + 1))); [|exact D4].
    apply (is_derive_minus (arc k) (fun y => arc k (y + 1))); assumption.
  - unfold defect1. field. repeat split; nra.
Qed.

Lemma is_lim_defect k y : 0 < k -> is_lim_seq (fun n => defect k (INR n + y)) 0.
Proof.
  intros Hk. unfold defect. replace (Finite 0) with (Finite (0 - 0 - 0)) by (f_equal; ring).
  apply is_lim_seq_minus'; [apply is_lim_seq_minus'|].
  - now apply is_lim_arc.
  - apply is_lim_seq_ext with (fun n => arc k (INR n + (y + 1))); [intros n; f_equal; ring|]. now apply is_lim_arc.
  - replace (Finite 0) with (Rbar_inv p_infty) by reflexivity. apply is_lim_seq_inv; [|discriminate].
    assert (L : is_lim_seq (fun n => INR n + y + / 2) p_infty).
    { apply (is_lim_seq_plus _ _ p_infty (/ 2)); [|apply is_lim_seq_const|reflexivity].
      apply (is_lim_seq_plus _ _ p_infty y); [apply is_lim_seq_INR|apply is_lim_seq_const|reflexivity]. }
    apply (is_lim_seq_plus _ _ p_infty c2); [|apply is_lim_seq_const|reflexivity].
    apply (is_lim_seq_mult _ _ p_infty p_infty p_infty L L). reflexivity.
Qed.

Lemma arc_step_upper k y : 0 < k -> k * k = c2 -> 0 < y -> c2 + / 8 <= (y + / 2) * (y + / 2) ->
  / ((y + / 2) * (y + / 2) + c2) <= arc k y - arc k (y + 1).
Proof.
  intros Hk Ek Hy Hz. assert (G : 0 <= defect k y); [|unfold defect in G; lra].
  apply (falls_to_0 (defect k) (defect1 k)); [intros w Hw; apply derive_defect; lra| |now apply is_lim_defect].
  intros w Hw. unfold defect1. set (z := w + / 2).
  assert (Pz : 0 < z) by (unfold z; lra). assert (Z2 : c2 + / 8 <= z * z) by (unfold z; nra).
  replace (w * w) with ((z - / 2) * (z - / 2)) by (unfold z; field).
  replace ((w + 1) * (w + 1)) with ((z + / 2) * (z + / 2)) by (unfold z; field).
  rewrite neighbours, Ek.
  assert (I : / ((z * z + c2) * (z * z + c2)) <= / ((z * z + c2) * (z * z + c2) - z * z / 2 + c2 / 2 + / 16)).
  { apply Rinv_le_contravar; [|lra]. pose proof (Rle_0_sqr (z * z - / 4)) as S. unfold Rsqr in S.
    assert (0 < z * z * c2) by (apply Rmult_lt_0_compat; nra). nra. }
  nra.
Qed.

Lemma arc_step_lower k y : 0 < k -> k * k = c2 + / 4 -> 0 < y ->
  arc k y - arc k (y + 1) <= / ((y + / 2) * (y + / 2) + c2).
Proof.
  intros Hk Ek Hy. assert (G : 0 <= - defect k y); [|unfold defect in G; lra].
  apply (falls_to_0 (fun w => - defect k w) (fun w => - defect1 k w)).
  - intros w Hw. apply (is_derive_opp (defect k)). apply derive_defect; lra.
  - intros w Hw. unfold defect1. set (z := w + / 2). assert (Pz : 0 < z) by (unfold z; lra).
    replace (w * w) with ((z - / 2) * (z - / 2)) by (unfold z; field).
    replace ((w + 1) * (w + 1)) with ((z + / 2) * (z + / 2)) by (unfold z; field).
    rewrite neighbours, Ek.
    assert (I : / ((z * z + (c2 + / 4)) * (z * z + (c2 + / 4)) - z * z / 2 + (c2 + / 4) / 2 + / 16)
                <= / ((z * z + c2) * (z * z + c2))).
    { apply Rinv_le_contravar; [|nra]. apply Rmult_lt_0_compat; nra. }
    nra.
  - replace (Finite 0) with (Finite (- 0)) by (f_equal; ring). apply (is_lim_seq_opp _ 0). now apply is_lim_defect.
Qed.

Theorem quadratic_tail_lower k j : 0 < k -> k * k = c2 + / 4 -> (1 <= j)%nat ->
  arc k (INR j - / 2) <= tail (quadratic c2) j.
Proof.
  intros Hk Ek Hj. pose proof (INR_ge_1 j Hj) as Pj.
  assert (E : ex_series (fun n => quadratic c2 (j + n))) by (apply ex_series_from; exact quadratic_converges).
  pose proof (series_ge_telescope _ (fun n => arc k (INR n + (INR j - / 2))) E (is_lim_arc k _ Hk)) as T.
  cbv beta in T. change (INR 0) with 0 in T. rewrite Rplus_0_l in T. apply T.
  intros n. pose proof (pos_INR n). unfold quadratic.
  replace (INR (j + n)) with (INR n + (INR j - / 2) + / 2) by (rewrite plus_INR; lra).
  replace (INR (S n) + (INR j - / 2)) with (INR n + (INR j - / 2) + 1) by (rewrite S_INR; ring).
  apply arc_step_lower; try assumption. lra.
Qed.

Theorem quadratic_tail_upper k j : 0 < k -> k * k = c2 -> (1 <= j)%nat -> c2 + / 8 <= INR j * INR j ->
  tail (quadratic c2) j <= arc k (INR j - / 2).
Proof.
  intros Hk Ek Hj Hz. pose proof (INR_ge_1 j Hj) as Pj.
  assert (E : ex_series (fun n => quadratic c2 (j + n))) by (apply ex_series_from; exact quadratic_converges).
  pose proof (series_le_telescope_lim _ (fun n => arc k (INR n + (INR j - / 2))) E (is_lim_arc k _ Hk)) as T.
  cbv beta in T. change (INR 0) with 0 in T. rewrite Rplus_0_l in T. apply T.
  intros n. pose proof (pos_INR n). unfold quadratic.
  replace (INR (j + n)) with (INR n + (INR j - / 2) + / 2) by (rewrite plus_INR; lra).
  replace (INR (S n) + (INR j - / 2)) with (INR n + (INR j - / 2) + 1) by (rewrite S_INR; ring).
  apply arc_step_upper; try assumption; [lra|]. nra.
Qed.
End Quadratic.

(* ------------------------------------------------------------------------------------------------------ the checker *)
Local Opaque within iZ iadd isub imul iinv isqrt iatan iQ imeet ijoin rest_in.

Section Check.
Variables (prec : I.F.precision) (c2 : Q).

Definition qterm (t : nat) : I.type := iinv prec (iQ prec (inject_Z (Z.of_nat t * Z.of_nat t) + c2)).

Definition iarc (k2 : Q) (j : Z) : I.type :=
  let k := isqrt prec (iQ prec k2) in
  imul prec (iatan prec (imul prec k (iinv prec (iQ prec (inject_Z j - (1 # 2)))))) (iinv prec k).

Definition powers : nat := 12.
Definition qtail (j : Z) : I.type :=
  imeet (ijoin (iarc (c2 + (1 # 4)) j) (iarc c2 j)) (rest_in prec c2 j powers 0).

Definition check_quadratic (first : Z) (eps : Q) (n : Z) (N : nat) : bool :=
  negb (Qle_bool c2 0) && (1 <=? first)%Z && Qle_bool (c2 + (1 # 8)) (inject_Z (first * first)) &&
  check_trf prec qterm qtail qtail first eps n N.

Lemma iarc_correct k2 j : within (iarc k2 (Z.of_nat j)) (arc (sqrt (Q2R k2)) (INR j - / 2)).
Proof.
  unfold iarc, arc. pose proof (isqrt_correct prec _ _ (iQ_correct prec k2)) as Wk. unfold Rdiv.
  apply imul_correct; [|now apply iinv_correct]. apply iatan_correct, imul_correct; [exact Wk|]. apply iinv_correct.
  replace (INR j - / 2) with (Q2R (inject_Z (Z.of_nat j) - (1 # 2))); [apply iQ_correct|].
  rewrite Q2R_minus, INR_IZR_INZ. unfold Q2R. simpl. field.
Qed.

Lemma qtail_correct j : 0 < Q2R c2 -> (1 <= j)%nat -> Q2R c2 + / 8 <= INR j * INR j ->
  within (qtail (Z.of_nat j)) (tail (quadratic (Q2R c2)) j).
Proof.
  intros Pc J1 J2. unfold qtail. apply imeet_correct.
  - assert (E : Q2R (c2 + (1 # 4)) = Q2R c2 + / 4) by (rewrite Q2R_plus; f_equal; unfold Q2R; simpl; lra).
    apply within_between with (arc (sqrt (Q2R (c2 + (1 # 4)))) (INR j - / 2)) (arc (sqrt (Q2R c2)) (INR j - / 2)).
    + apply ijoin_l, iarc_correct.
    + apply ijoin_r, iarc_correct.
    + rewrite E. split.
      * apply quadratic_tail_lower; [exact Pc|apply sqrt_lt_R0; lra|apply sqrt_sqrt; lra|exact J1].
      * apply quadratic_tail_upper; [exact Pc|now apply sqrt_lt_R0|apply sqrt_sqrt; lra|exact J1|exact J2].
  - replace (tail (quadratic (Q2R c2)) j) with (Series (rest_term (Q2R c2) (Z.to_nat (Z.of_nat j)) 0)).
    + apply rest_in_correct; [lia|exact Pc].
    + rewrite Nat2Z.id. apply Series_ext. intros n. unfold rest_term, square_at, quadratic. simpl. rewrite Rinv_1. ring.
Qed.

Theorem check_quadratic_correct first eps n N : check_quadratic first eps n N = true ->
  is_trf (quadratic (Q2R c2)) (Q2R eps) (Z.to_nat n).
Proof.
  unfold check_quadratic. intros H. apply Bool.andb_true_iff in H. destruct H as [H H4].
  apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
  assert (Pc : 0 < Q2R c2).
  { apply Bool.negb_true_iff in H1. destruct (Qlt_le_dec 0 c2) as [h|h].
    - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
    - apply Qle_bool_iff in h. congruence. }
  apply Z.leb_le in H2. apply Qle_bool_iff in H3. apply Qle_Rle in H3. rewrite Q2R_plus in H3.
  assert (E8 : Q2R (1 # 8) = / 8) by (unfold Q2R; simpl; lra). rewrite E8 in H3.
  assert (EF : Q2R (inject_Z (first * first)) = IZR first * IZR first) by (unfold Q2R; simpl; rewrite mult_IZR; field).
  rewrite EF in H3.
  assert (J : forall j, (first <= Z.of_nat j)%Z -> (1 <= j)%nat /\ Q2R c2 + / 8 <= INR j * INR j).
  { intros j Hj. split; [lia|]. apply Rle_trans with (1 := H3). apply IZR_le in Hj. rewrite <- INR_IZR_INZ in Hj.
    assert (1 <= IZR first) by (apply (IZR_le 1); exact H2). nra. }
  apply (check_trf_correct prec qterm qtail qtail first (quadratic (Q2R c2))) with N; [| | | | |exact H4].
  - intros t. unfold quadratic. left. apply Rinv_0_lt_compat. pose proof (pos_INR t). nra.
  - now apply quadratic_converges.
  - intros t. unfold qterm, quadratic. apply iinv_correct.
    replace (INR t * INR t + Q2R c2) with (Q2R (inject_Z (Z.of_nat t * Z.of_nat t) + c2)); [apply iQ_correct|].
    rewrite Q2R_plus. f_equal. rewrite INR_IZR_INZ, <- mult_IZR. unfold Q2R. simpl. field.
  - intros j Hj. destruct (J j Hj) as [J1 J2]. exists (tail (quadratic (Q2R c2)) j). split; [now apply qtail_correct|lra].
  - intros j Hj. destruct (J j Hj) as [J1 J2]. exists (tail (quadratic (Q2R c2)) j). split; [now apply qtail_correct|lra].
Qed.
End Check.

(* type 1 with the slope k, k^2 = 1/c2: every slope 2^(-h/2) has a rational square *)
Theorem type1_trf prec (c2 eps : Q) (first n : Z) (N : nat) (k eps' : R) :
  k * k * Q2R c2 = 1 -> Q2R eps = eps' -> check_quadratic prec c2 first eps n N = true ->
  is_trf (type1 k) eps' (Z.to_nat n).
Proof.
  intros Hk <- H. pose proof (check_quadratic_correct prec c2 first eps n N H) as T.
  assert (Pc : 0 < Q2R c2).
  { unfold check_quadratic in H. apply Bool.andb_true_iff in H. destruct H as [H _].
    apply Bool.andb_true_iff in H. destruct H as [H _]. apply Bool.andb_true_iff in H. destruct H as [H1 _].
    apply Bool.negb_true_iff in H1. destruct (Qlt_le_dec 0 c2) as [h|h].
    - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
    - apply Qle_bool_iff in h. congruence. }
  apply (trf_scale (Q2R c2) _ _ _ Pc) in T. apply (trf_ext _ (type1 k)) in T; [exact T|].
  intros t. unfold quadratic, type1. assert (P : 0 < 1 + (k * INR t) ^ 2) by (simpl; nra).
  rewrite exp_Ropp, exp_ln by exact P. pose proof (pos_INR t).
  assert (E : 1 + (k * INR t) ^ 2 = (INR t * INR t + Q2R c2) * / Q2R c2).
  { assert (K : k * k = / Q2R c2) by (apply (Rmult_eq_reg_r (Q2R c2)); [rewrite Rinv_l by lra; exact Hk|lra]).
    replace ((k * INR t) ^ 2) with (k * k * (INR t * INR t)) by ring. rewrite K. field. lra. }
  rewrite E. rewrite Rinv_mult, Rinv_inv. ring.
Qed.

(* the slopes 2^(-n/2) *)
Lemma slope_square q (n : nat) : q + q = - INR n -> Rpower 2 q * Rpower 2 q * 2 ^ n = 1.
Proof.
  intros H. rewrite <- Rpower_plus, H, Rpower_INR by lra. field. apply pow_nonzero. lra.
Qed.
