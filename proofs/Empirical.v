(* TRF and ERF: the sharp relation between the receptive field of the weights and that of a trained model (Theorem A iv).

   The attention of a trained head has the weights c t = exp (s t) * b t. If its logits differ by at most R (`gap` below),
       n_the (eps'') <= n_emp (eps) <= n_the (eps'),
       eps' = eps e^-R / (1 - eps + eps e^-R),   eps'' = eps e^R / (1 - eps + eps e^R),
   for rows of any length (the field within the row) and for the infinite row. The upper bound is attained. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Rows Sharp Fields.
Open Scope R_scope.

Definition shifted (eps gap : R) : R := eps * exp (- gap) / (1 - eps + eps * exp (- gap)).

Lemma shifted_denominator eps gap : 0 < eps < 1 -> 0 < 1 - eps + eps * exp (- gap).
Proof. intros H. pose proof (exp_pos (- gap)). nra. Qed.

Lemma shifted_bounds eps gap : 0 < eps < 1 -> 0 < shifted eps gap < 1.
Proof.
  intros H. pose proof (exp_pos (- gap)) as P. pose proof (shifted_denominator eps gap H) as D. unfold shifted. split.
  - apply Rdiv_lt_0_compat; nra.
  - apply (Rmult_lt_reg_r (1 - eps + eps * exp (- gap))); [exact D|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(* x below the shifted share of x + y means x (1 - eps) below eps e^-gap y *)
Lemma shifted_lt eps gap x y : 0 < eps < 1 -> (x < shifted eps gap * (x + y) <-> x * (1 - eps) < eps * exp (- gap) * y).
Proof.
  intros H. pose proof (shifted_denominator eps gap H) as D. unfold shifted. set (d := 1 - eps + eps * exp (- gap)) in *.
  assert (E : eps * exp (- gap) / d * (x + y) * d = eps * exp (- gap) * (x + y)) by (field; lra).
  split; intros K.
  - apply (Rmult_lt_compat_r d) in K; [|exact D]. rewrite E in K. unfold d in K. nra.
  - apply (Rmult_lt_reg_r d); [exact D|]. rewrite E. unfold d. nra.
Qed.

Section Relation.
Variables (b s : nat -> R) (gap eps : R).
Hypotheses (Hb : forall t, 0 <= b t) (H0 : 0 < b 0%nat) (He : 0 < eps < 1).
Hypothesis spread : forall t u, s u - s t <= gap.

Let c := weights b s.

Lemma Hc : forall t, 0 <= c t. Proof. now apply weights_nonneg. Qed.
Lemma Hc0 : 0 < c 0%nat. Proof. now apply weights_pos. Qed.

(* a window that leaves less than eps' of the weights leaves less than eps of the attention, and conversely *)
Lemma share_transfer_upper j n : (j <= n)%nat -> (1 <= j)%nat ->
  head b n - head b j < shifted eps gap * head b n -> head c n - head c j < eps * head c n.
Proof.
  intros Hjn Hj H. pose proof (weights_exchange b s gap j n Hjn Hb (fun t u _ _ => spread t u)) as X. fold c in X.
  replace (head b n) with ((head b n - head b j) + head b j) in H at 2 by ring.
  apply (shifted_lt eps gap _ _ He) in H. pose proof (head_pos b j Hb H0 Hj) as P. pose proof (exp_pos gap) as PR.
  assert (ER : exp (- gap) * exp gap = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  pose proof (head_pos c j Hc Hc0 Hj) as Q.
  assert (A : (head c n - head c j) * (1 - eps) < eps * head c j); [|lra].
  apply (Rmult_lt_reg_r (head b j)); [exact P|].
  apply Rle_lt_trans with (exp gap * head c j * (head b n - head b j) * (1 - eps)).
  - replace ((head c n - head c j) * (1 - eps) * head b j) with ((head c n - head c j) * head b j * (1 - eps)) by ring.
    apply Rmult_le_compat_r; lra.
  - apply (Rmult_lt_compat_l (exp gap * head c j)) in H; [|nra].
    replace (exp gap * head c j * (eps * exp (- gap) * head b j)) with ((exp (- gap) * exp gap) * (eps * head c j * head b j))
      in H by ring. rewrite ER in H. lra.
Qed.

Lemma share_transfer_lower j n : (j <= n)%nat -> (1 <= j)%nat ->
  head c n - head c j < eps * head c n -> head b n - head b j < shifted eps (- gap) * head b n.
Proof.
  intros Hjn Hj H. replace (head b n) with ((head b n - head b j) + head b j) at 2 by ring.
  apply (shifted_lt eps (- gap) _ _ He). rewrite Ropp_involutive.
  pose proof (share_lower b s gap j n Hj Hjn Hb H0 (fun t u _ _ => spread u t)) as L. unfold outside_share in L. fold c in L.
  pose proof (head_pos b j Hb H0 Hj) as P. pose proof (head_pos c j Hc Hc0 Hj) as Q.
  pose proof (head_mono b j n Hb Hjn) as P'. pose proof (head_mono c j n Hc Hjn) as Q'. pose proof (exp_pos gap) as PR.
  assert (S : 1 - head c j / head c n < eps).
  { apply (Rmult_lt_reg_r (head c n)); [lra|].
    replace ((1 - head c j / head c n) * head c n) with (head c n - head c j) by (field; lra). lra. }
  set (T := head b n - head b j) in *. set (H' := head b j) in *.
  assert (D : 0 < T + exp gap * H') by (assert (0 <= T) by (unfold T, H' in *; lra); nra).
  assert (K : T / (T + exp gap * H') < eps) by lra.
  apply (Rmult_lt_compat_r (T + exp gap * H')) in K; [|exact D].
  unfold Rdiv in K. rewrite Rmult_assoc, Rinv_l in K by lra. lra.
Qed.

Lemma reach_within (x : nat -> R) n e j : (forall t, 0 <= x t) -> (1 <= n)%nat -> 0 < x 0%nat -> 0 < e < 1 ->
  is_reach x n e j -> (1 <= j <= n)%nat.
Proof.
  intros Hx Hn Hx0 He' [H M]. pose proof (head_pos x n Hx Hx0 Hn) as P. split.
  - destruct j; [exfalso; simpl in H; nra|lia].
  - destruct (Nat.le_gt_cases j n) as [h|h]; [exact h|exfalso]. specialize (M n h). nra.
Qed.

(* within a row of n tokens: the two sides *)
Theorem erf_upper n i j : (1 <= n)%nat ->
  is_reach c n eps i -> is_reach b n (shifted eps gap) j -> (i <= j)%nat.
Proof.
  intros Hn Hi Hj. pose proof (reach_within b n _ j Hb Hn H0 (shifted_bounds eps gap He) Hj) as [J1 J2].
  destruct Hi as [_ Mi]. destruct Hj as [Hj _].
  destruct (Nat.le_gt_cases i j) as [h|h]; [exact h|exfalso]. specialize (Mi j h).
  pose proof (share_transfer_upper j n J2 J1 Hj). lra.
Qed.

Theorem erf_lower n i j : (1 <= n)%nat ->
  is_reach b n (shifted eps (- gap)) i -> is_reach c n eps j -> (i <= j)%nat.
Proof.
  intros Hn Hi Hj. pose proof (reach_within c n eps j Hc Hn Hc0 He Hj) as [J1 J2].
  destruct Hi as [_ Mi]. destruct Hj as [Hj _].
  destruct (Nat.le_gt_cases i j) as [h|h]; [exact h|exfalso]. specialize (Mi j h).
  pose proof (share_transfer_lower j n J2 J1 Hj). lra.
Qed.

(* for every row: the ERF is at most the TRF at eps' *)
Theorem erf_le_trf n i j : ex_series b -> (1 <= n)%nat ->
  is_reach c n eps i -> is_trf b (shifted eps gap) j -> (i <= j)%nat.
Proof.
  intros Hs Hn Hi Hj. pose proof (shifted_bounds eps gap He) as S.
  destruct (reach_exists b n (shifted eps gap) Hb (head_pos b n Hb H0 Hn) ltac:(lra)) as [k Hk].
  apply Nat.le_trans with k; [now apply (erf_upper n)|].
  apply (reach_le_trf b Hb H0 n (shifted eps gap) k j Hs ltac:(lra) Hn Hk Hj).
Qed.

(* the infinite row *)
Lemma weights_converge : ex_series b -> ex_series c.
Proof.
  intros Hs. apply (ex_series_below c (fun t => exp (s 0%nat + gap) * b t) 0).
  - intros t _. split; [apply Hc|]. apply Rmult_le_compat_r; [apply Hb|]. apply exp_le.
    specialize (spread 0%nat t). lra.
  - now apply (ex_series_scal_l (exp (s 0%nat + gap)) b).
Qed.

Lemma exchange_infinite j : ex_series b -> tail c j * head b j <= exp gap * head c j * tail b j.
Proof.
  intros Hs. pose proof (weights_converge Hs) as Hcs.
  assert (Rbar_le (tail c j * head b j) (exp gap * head c j * tail b j)) as K; [|exact K].
  apply (is_lim_seq_le_loc (fun n => (head c n - head c j) * head b j)
                           (fun n => exp gap * head c j * (head b n - head b j))).
  - exists j. intros n Hn. exact (weights_exchange b s gap j n Hn Hb (fun t u _ _ => spread t u)).
  - apply (is_lim_seq_scal_r _ (head b j) (tail c j)). replace (tail c j) with (total c - head c j)
      by (rewrite (head_tail c j Hcs); ring).
    apply is_lim_seq_minus'; [now apply is_lim_head|apply is_lim_seq_const].
  - apply (is_lim_seq_scal_l _ (exp gap * head c j) (tail b j)). replace (tail b j) with (total b - head b j)
      by (rewrite (head_tail b j Hs); ring).
    apply is_lim_seq_minus'; [now apply is_lim_head|apply is_lim_seq_const].
Qed.

Lemma exchange_infinite_lower j : ex_series b -> (1 <= j)%nat -> head c j * tail b j <= exp gap * tail c j * head b j.
Proof.
  intros Hs Hj. pose proof (weights_converge Hs) as Hcs.
  assert (U : forall u, head c j * b u <= exp gap * head b j * c u).
  { intros u. unfold c at 2. unfold weights. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Hb|].
    replace (exp gap * head b j * exp (s u)) with (exp gap * exp (s u) * head b j) by ring.
    rewrite <- head_scal. apply head_le. intros t _. unfold c, weights. apply Rmult_le_compat_r; [apply Hb|].
    rewrite <- exp_plus. apply exp_le. specialize (spread u t). lra. }
  replace (exp gap * tail c j * head b j) with (exp gap * head b j * tail c j) by ring. rewrite <- !tail_scal.
  unfold tail. apply Series_le.
  - intros n. split; [|apply U]. apply Rmult_le_pos; [apply head_nonneg, Hc|apply Hb].
  - apply (ex_series_scal_l (exp gap * head b j) (fun n => c (j + n)%nat)). now apply ex_series_from.
Qed.

(* n_the (eps'') <= n_emp (eps) <= n_the (eps') *)
Theorem trf_erf_relation i j k : ex_series b ->
  is_trf b (shifted eps (- gap)) i -> is_trf c eps j -> is_trf b (shifted eps gap) k -> (i <= j <= k)%nat.
Proof.
  intros Hs Hi Hj Hk. pose proof (weights_converge Hs) as Hcs.
  pose proof (exp_pos gap) as PR. assert (ER : exp (- gap) * exp gap = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  split.
  - pose proof (trf_at_least_1 c eps j Hc Hc0 Hcs ltac:(lra) Hj) as J.
    destruct Hi as [_ Mi]. destruct Hj as [Hj _].
    destruct (Nat.le_gt_cases i j) as [h|h]; [exact h|exfalso]. specialize (Mi j h).
    rewrite (head_tail b j Hs), (Rplus_comm (head b j)) in Mi. rewrite (head_tail c j Hcs) in Hj.
    pose proof (exchange_infinite_lower j Hs J) as X. pose proof (head_pos b j Hb H0 J) as P.
    pose proof (head_pos c j Hc Hc0 J) as Q.
    assert (K : ~ (tail b j < shifted eps (- gap) * (tail b j + head b j))) by lra. apply K.
    apply (shifted_lt eps (- gap) _ _ He). rewrite Ropp_involutive.
    apply (Rmult_lt_reg_r (head c j)); [exact Q|].
    apply Rle_lt_trans with (exp gap * tail c j * head b j * (1 - eps)).
    + replace (tail b j * (1 - eps) * head c j) with (head c j * tail b j * (1 - eps)) by ring.
      apply Rmult_le_compat_r; lra.
    + replace (exp gap * tail c j * head b j * (1 - eps)) with (exp gap * head b j * (tail c j * (1 - eps))) by ring.
      replace (eps * exp gap * head b j * head c j) with (exp gap * head b j * (eps * head c j)) by ring.
      apply Rmult_lt_compat_l; [nra|]. lra.
  - pose proof (shifted_bounds eps gap He) as S.
    pose proof (trf_at_least_1 b (shifted eps gap) k Hb H0 Hs ltac:(lra) Hk) as J.
    destruct Hj as [_ Mj]. destruct Hk as [Hk _].
    destruct (Nat.le_gt_cases j k) as [h|h]; [exact h|exfalso]. specialize (Mj k h).
    rewrite (head_tail b k Hs), (Rplus_comm (head b k)) in Hk. rewrite (head_tail c k Hcs) in Mj.
    apply (shifted_lt eps gap _ _ He) in Hk. pose proof (exchange_infinite k Hs) as X.
    pose proof (head_pos b k Hb H0 J) as P. pose proof (head_pos c k Hc Hc0 J) as Q.
    assert (A : tail c k * (1 - eps) < eps * head c k); [|lra].
    apply (Rmult_lt_reg_r (head b k)); [exact P|].
    apply Rle_lt_trans with (exp gap * head c k * tail b k * (1 - eps)).
    + replace (tail c k * (1 - eps) * head b k) with (tail c k * head b k * (1 - eps)) by ring.
      apply Rmult_le_compat_r; lra.
    + apply (Rmult_lt_compat_l (exp gap * head c k)) in Hk; [|nra].
      replace (exp gap * head c k * (eps * exp (- gap) * head b k)) with ((exp (- gap) * exp gap) * (eps * head c k * head b k))
        in Hk by ring. rewrite ER in Hk. lra.
Qed.
End Relation.

(* The upper bound is attained: logits that favour everything from the last token of the field on by gap *)
Theorem erf_upper_attained b gap eps n j : (forall t, 0 <= b t) -> 0 < b 0%nat -> 0 < eps < 1 -> 0 <= gap -> (1 <= n)%nat ->
  is_reach b n (shifted eps gap) (S j) -> (1 <= j)%nat ->
  is_reach (weights b (fun t => if Nat.ltb t j then 0 else gap)) n eps (S j).
Proof.
  intros Hb H0 He HR Hn H Hj1. set (s := fun t => if Nat.ltb t j then 0 else gap).
  assert (sp : forall t u, s u - s t <= gap).
  { intros t u. unfold s. destruct (Nat.ltb t j), (Nat.ltb u j); lra. }
  pose proof (weights_nonneg b s Hb) as Hc'. pose proof (weights_pos b s 0 H0) as Hc0'.
  destruct (reach_exists (weights b s) n eps Hc' (head_pos _ n Hc' Hc0' Hn) ltac:(lra)) as [i Hi].
  pose proof (erf_upper b s gap eps Hb H0 He sp n i (S j) Hn Hi H) as U.
  pose proof (reach_within b n _ _ Hb Hn H0 (shifted_bounds eps gap He) H) as [_ J2].
  replace (S j) with i; [exact Hi|]. destruct (Nat.eq_dec i (S j)) as [e|e]; [exact e|exfalso].
  destruct H as [_ M]. specialize (M j ltac:(lia)). destruct Hi as [Hi _].
  pose proof (head_mono _ i j Hc' ltac:(lia)) as Mi.
  pose proof (share_attained b gap j n Hj1 ltac:(lia) Hb H0) as A. fold s in A. unfold outside_share in A.
  pose proof (head_pos b j Hb H0 Hj1) as P. pose proof (head_mono b j n Hb ltac:(lia)) as P'.
  pose proof (head_pos _ n Hc' Hc0' Hn) as Q. pose proof (exp_pos (- gap)) as PR.
  set (T := head b n - head b j) in *. assert (HT : 0 <= T) by (unfold T; lra).
  assert (D : 0 < T + exp (- gap) * head b j) by nra.
  assert (S1 : 1 - head (weights b s) j / head (weights b s) n < eps).
  { apply (Rmult_lt_reg_r (head (weights b s) n)); [exact Q|].
    replace ((1 - head (weights b s) j / head (weights b s) n) * head (weights b s) n)
      with (head (weights b s) n - head (weights b s) j) by (field; lra). lra. }
  rewrite A in S1. apply (Rmult_lt_compat_r (T + exp (- gap) * head b j)) in S1; [|exact D].
  unfold Rdiv in S1. rewrite Rmult_assoc, Rinv_l in S1 by lra.
  replace (head b n) with (T + head b j) in M by (unfold T; ring).
  assert (K : ~ (T < shifted eps gap * (T + head b j))) by lra. apply K. apply (shifted_lt eps gap _ _ He). lra.
Qed.

(* Theorem A (iii) with the number: the TRF at the shifted share of eps / (2 V) is a window for all rows and inputs *)
Theorem window_from_trf (E : NormedModule R_AbsRing) b M V eps j0 : (forall t, 0 <= b t) -> 0 < b 0%nat -> ex_series b ->
  0 < V -> 0 < eps < 2 * V -> is_trf b (shifted (eps / (2 * V)) (2 * M)) j0 ->
  forall (j n : nat) (s : nat -> R) (v : nat -> E), (1 <= j)%nat -> (j0 <= j)%nat -> (j <= n)%nat ->
    (forall t, Rabs (s t) <= M) -> (forall t, norm (v t) <= V) ->
    norm (minus (output (weights b s) v n) (output (weights b s) v j)) < eps.
Proof.
  intros Hb H0 Hs HV He [Hj0 _] j n s v H1 Hj Hjn Hsb Hv. set (e := eps / (2 * V)) in *.
  assert (He' : 0 < e < 1).
  { unfold e. split; [apply Rdiv_lt_0_compat; lra|]. apply (Rmult_lt_reg_r (2 * V)); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  pose proof (weights_nonneg b s Hb) as Hc'. pose proof (weights_pos b s 0 H0) as Hc0'.
  apply Rle_lt_trans with (1 := truncation (weights b s) v V j n H1 Hjn Hc' Hc0' Hv).
  pose proof (head_pos b n Hb H0 ltac:(lia)) as P. pose proof (total_pos b Hb H0 Hs) as PT.
  assert (T : head b n - head b j < shifted e (2 * M) * head b n).
  { pose proof (leak_below_tail b Hb H0 j n Hs ltac:(lia)) as L. unfold leak, outside_share in L.
    pose proof (tail_mono b j0 j Hb Hs Hj) as Mt.
    assert (K : tail b j / total b < shifted e (2 * M)).
    { apply (Rmult_lt_reg_r (total b)); [exact PT|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (K2 : 1 - head b j / head b n < shifted e (2 * M)) by lra.
    apply (Rmult_lt_compat_r (head b n)) in K2; [|exact P].
    replace ((1 - head b j / head b n) * head b n) with (head b n - head b j) in K2 by (field; lra). exact K2. }
  pose proof (share_transfer_upper b s (2 * M) e Hb H0 He' (spread_of_bound s M Hsb) j n Hjn H1 T) as S.
  pose proof (head_pos _ n Hc' Hc0' ltac:(lia)) as Q.
  assert (S2 : outside_share (weights b s) j n < e).
  { unfold outside_share. apply (Rmult_lt_reg_r (head (weights b s) n)); [exact Q|].
    replace ((1 - head (weights b s) j / head (weights b s) n) * head (weights b s) n)
      with (head (weights b s) n - head (weights b s) j) by (field; lra). exact S. }
  apply (Rmult_lt_compat_l (2 * V)) in S2; [|lra]. unfold e in S2.
  replace (2 * V * (eps / (2 * V))) with eps in S2 by (field; lra). exact S2.
Qed.
