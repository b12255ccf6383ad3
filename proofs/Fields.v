(* Receptive fields: what they are, that they exist, how they move, and how two encodings compare.

   is_trf b eps j    j is the theoretical receptive field: the smallest j with tail b j < eps * total b
   is_reach c n eps j   the same within a row of n tokens; with the weights of a trained model it is the empirical
                        receptive field (ERF) of that row, with the positional weights the finite-length TRF *)
From Coq Require Import Reals Psatz Lia Wf_nat.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Rows Sharp.
Open Scope R_scope.

Definition is_trf (b : nat -> R) (eps : R) (j : nat) : Prop :=
  tail b j < eps * total b /\ forall i, (i < j)%nat -> eps * total b <= tail b i.

Definition is_reach (c : nat -> R) (n : nat) (eps : R) (j : nat) : Prop :=
  head c n - head c j < eps * head c n /\ forall i, (i < j)%nat -> eps * head c n <= head c n - head c i.

(* the smallest number with a property *)
Lemma smallest (P : nat -> Prop) : (exists n, P n) -> exists n, P n /\ forall i, (i < n)%nat -> ~ P i.
Proof.
  intros [n Hn]. induction n as [n IH] using lt_wf_ind.
  destruct (Classical_Prop.classic (exists i, (i < n)%nat /\ P i)) as [[i [Hi Pi]]|H].
  - now apply (IH i).
  - exists n. split; [exact Hn|]. intros i Hi Pi. apply H. now exists i.
Qed.

(* ------------------------------------------------------------------------------------------------- TRF, the basics *)
(* two inequalities prove a receptive field *)
Lemma trf_intro b eps j : (forall t, 0 <= b t) -> ex_series b ->
  tail b (S j) < eps * total b -> eps * total b <= tail b j -> is_trf b eps (S j).
Proof.
  intros Hb Hs H1 H2. split; [exact H1|]. intros i Hi. apply Rle_trans with (1 := H2). apply tail_mono; [exact Hb|exact Hs|lia].
Qed.

Lemma trf_unique b eps i j : is_trf b eps i -> is_trf b eps j -> i = j.
Proof.
  intros [Hi Mi] [Hj Mj]. destruct (Nat.lt_trichotomy i j) as [h|[h|h]]; [|exact h|].
  - specialize (Mj i h). lra.
  - specialize (Mi j h). lra.
Qed.

Theorem trf_exists b eps : (forall t, 0 <= b t) -> 0 < b 0%nat -> ex_series b -> 0 < eps -> exists j, is_trf b eps j.
Proof.
  intros Hb H0 Hs He. pose proof (total_pos b Hb H0 Hs) as P.
  assert (Pe : 0 < eps * total b) by nra.
  destruct (smallest (fun j => tail b j < eps * total b)) as [j [Hj Mj]].
  - pose proof (is_lim_tail b Hs) as L. apply is_lim_seq_spec in L. destruct (L (mkposreal _ Pe)) as [N HN].
    exists N. specialize (HN N ltac:(lia)). simpl in HN. rewrite Rminus_0_r in HN.
    apply Rle_lt_trans with (2 := HN). apply Rle_abs.
  - exists j. split; [exact Hj|]. intros i Hi. apply Rnot_lt_le. now apply Mj.
Qed.

(* the definition by the head, as the paper prints it first *)
Lemma trf_by_head b eps j : ex_series b -> (tail b j < eps * total b <-> total b * (1 - eps) < head b j).
Proof. intros Hs. pose proof (head_tail b j Hs). split; intros; lra. Qed.

(* at least the token itself *)
Lemma trf_at_least_1 b eps j : (forall t, 0 <= b t) -> 0 < b 0%nat -> ex_series b -> eps <= 1 ->
  is_trf b eps j -> (1 <= j)%nat.
Proof.
  intros Hb H0 Hs He [H _]. destruct j; [exfalso|lia]. pose proof (total_pos b Hb H0 Hs).
  pose proof (head_tail b 0 Hs). simpl in H2. nra.
Qed.

Theorem trf_antitone b e1 e2 i j : (forall t, 0 <= b t) -> ex_series b -> e1 <= e2 ->
  is_trf b e1 i -> is_trf b e2 j -> (j <= i)%nat.
Proof.
  intros Hb Hs He [Hi _] [_ Mj]. destruct (Nat.le_gt_cases j i) as [h|h]; [exact h|exfalso].
  specialize (Mj i h). assert (0 <= total b) by (rewrite (head_tail b 0 Hs); pose proof (tail_nonneg b 0 Hb Hs); simpl; lra).
  nra.
Qed.

(* a constant factor changes nothing *)
Theorem trf_scale k b eps j : 0 < k -> (is_trf (fun t => k * b t) eps j <-> is_trf b eps j).
Proof.
  intros Hk. unfold is_trf. rewrite total_scal. split; intros [H M]; split.
  - rewrite tail_scal in H. apply (Rmult_lt_reg_l k); [exact Hk|]. lra.
  - intros i Hi. specialize (M i Hi). rewrite tail_scal in M. apply (Rmult_le_reg_l k); [exact Hk|]. lra.
  - rewrite tail_scal. apply (Rmult_lt_compat_l k) in H; [lra|exact Hk].
  - intros i Hi. specialize (M i Hi). rewrite tail_scal. apply (Rmult_le_compat_l k) in M; [lra|lra].
Qed.

Lemma trf_ext a b eps j : (forall t, a t = b t) -> is_trf a eps j -> is_trf b eps j.
Proof.
  intros H [H1 H2]. assert (T : forall i, tail a i = tail b i) by (intros i; apply Series_ext; intros; apply H).
  assert (T0 : total a = total b) by (apply Series_ext; exact H).
  split; [now rewrite <- T, <- T0|]. intros i Hi. rewrite <- T, <- T0. now apply H2.
Qed.

(* ------------------------------------------------------------------------------------- rows of finite length, leaks *)
Lemma reach_exists c n eps : (forall t, 0 <= c t) -> 0 < head c n -> 0 < eps -> exists j, is_reach c n eps j.
Proof.
  intros Hc Hn He. destruct (smallest (fun j => head c n - head c j < eps * head c n)) as [j [Hj Mj]].
  - exists n. nra.
  - exists j. split; [exact Hj|]. intros i Hi. apply Rnot_lt_le. now apply Mj.
Qed.

Lemma reach_unique c n eps i j : is_reach c n eps i -> is_reach c n eps j -> i = j.
Proof.
  intros [Hi Mi] [Hj Mj]. destruct (Nat.lt_trichotomy i j) as [h|[h|h]]; [|exact h|].
  - specialize (Mj i h). lra.
  - specialize (Mi j h). lra.
Qed.

(* the leak from m to n tokens: the share of a row of n tokens beyond the first m *)
Definition leak (b : nat -> R) (m n : nat) : R := outside_share b m n.

Section Leak.
Variable b : nat -> R.
Hypotheses (Hb : forall t, 0 <= b t) (H0 : 0 < b 0%nat).

Theorem leak_rises m n1 n2 : (1 <= n1)%nat -> (n1 <= n2)%nat -> leak b m n1 <= leak b m n2.
Proof.
  intros H1 H2. pose proof (head_pos b n1 Hb H0 H1) as P. pose proof (head_mono b n1 n2 Hb H2) as Q.
  unfold leak, outside_share. assert (/ head b n2 <= / head b n1) by (apply Rinv_le_contravar; lra).
  pose proof (head_nonneg b m Hb). unfold Rdiv. nra.
Qed.

Theorem leak_falls m1 m2 n : (1 <= n)%nat -> (m1 <= m2)%nat -> leak b m2 n <= leak b m1 n.
Proof.
  intros H1 H2. pose proof (head_pos b n Hb H0 H1) as P. pose proof (head_mono b m1 m2 Hb H2) as Q.
  unfold leak, outside_share. assert (0 < / head b n) by now apply Rinv_0_lt_compat. unfold Rdiv. nra.
Qed.

(* for a convergent sum the leak stays below the share of the tail, and tends to it *)
Theorem leak_below_tail m n : ex_series b -> (1 <= n)%nat -> leak b m n <= tail b m / total b.
Proof.
  intros Hs Hn. pose proof (head_pos b n Hb H0 Hn) as P. pose proof (head_le_total b n Hb Hs) as Q.
  assert (E : tail b m / total b = 1 - head b m / total b).
  { pose proof (head_tail b m Hs). replace (tail b m) with (total b - head b m) by lra. field. lra. }
  rewrite E. unfold leak, outside_share. assert (/ total b <= / head b n) by (apply Rinv_le_contravar; lra).
  pose proof (head_nonneg b m Hb). unfold Rdiv. nra.
Qed.

Theorem leak_tends_to_tail m : ex_series b -> is_lim_seq (fun n => leak b m n) (tail b m / total b).
Proof.
  intros Hs. pose proof (total_pos b Hb H0 Hs) as P.
  replace (Finite (tail b m / total b)) with (Finite (1 - head b m / total b)).
  - unfold leak, outside_share. apply is_lim_seq_minus'; [apply is_lim_seq_const|].
    apply is_lim_seq_div'; [apply is_lim_seq_const|now apply is_lim_head|lra].
  - f_equal. rewrite (head_tail b m Hs) in *. field. lra.
Qed.

(* for a divergent sum everything leaks in the end *)
Theorem leak_tends_to_1 m : ~ ex_series b -> is_lim_seq (fun n => leak b m n) 1.
Proof.
  intros Hd. replace (Finite 1) with (Finite (1 - 0)) by (f_equal; ring).
  unfold leak, outside_share. apply is_lim_seq_minus'; [apply is_lim_seq_const|].
  apply is_lim_seq_spec. intros e. destruct (head_unbounded b Hb Hd (head b m / e)) as [N HN]. exists N.
  intros n Hn. pose proof (cond_pos e) as Pe. pose proof (head_mono b N n Hb Hn) as M.
  pose proof (head_nonneg b m Hb) as Pm.
  assert (Q : 0 <= head b m / e) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (Pn : 0 < head b n) by lra.
  rewrite Rminus_0_r, Rabs_right by (apply Rle_ge, Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  apply (Rmult_lt_reg_r (head b n)); [exact Pn|]. unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (K : head b m / e < head b n) by lra. apply (Rmult_lt_compat_l e) in K; [|exact Pe].
  replace (e * (head b m / e)) with (head b m) in K by (field; lra). exact K.
Qed.

(* the reach within a row rises with the row, and never exceeds the TRF *)
Theorem reach_rises n1 n2 eps i j : 0 < eps -> (1 <= n1)%nat -> (n1 <= n2)%nat ->
  is_reach b n1 eps i -> is_reach b n2 eps j -> (i <= j)%nat.
Proof.
  intros He H1 H2 [_ Mi] [Hj _]. destruct (Nat.le_gt_cases i j) as [h|h]; [exact h|exfalso]. specialize (Mi j h).
  pose proof (head_pos b n1 Hb H0 H1) as P. pose proof (head_mono b n1 n2 Hb H2) as Q.
  pose proof (leak_rises j n1 n2 H1 H2) as L. unfold leak, outside_share in L.
  assert (A : eps <= 1 - head b j / head b n1).
  { apply (Rmult_le_reg_r (head b n1)); [exact P|].
    replace ((1 - head b j / head b n1) * head b n1) with (head b n1 - head b j) by (field; lra). lra. }
  assert (B : 1 - head b j / head b n2 < eps).
  { apply (Rmult_lt_reg_r (head b n2)); [lra|].
    replace ((1 - head b j / head b n2) * head b n2) with (head b n2 - head b j) by (field; lra). lra. }
  lra.
Qed.

Theorem reach_le_trf n eps i j : ex_series b -> 0 < eps -> (1 <= n)%nat ->
  is_reach b n eps i -> is_trf b eps j -> (i <= j)%nat.
Proof.
  intros Hs He Hn [_ Mi] [Hj _]. destruct (Nat.le_gt_cases i j) as [h|h]; [exact h|exfalso]. specialize (Mi j h).
  pose proof (head_pos b n Hb H0 Hn) as P. pose proof (total_pos b Hb H0 Hs) as Q.
  pose proof (leak_below_tail j n Hs Hn) as L. unfold leak, outside_share in L.
  assert (A : eps <= 1 - head b j / head b n).
  { apply (Rmult_le_reg_r (head b n)); [exact P|].
    replace ((1 - head b j / head b n) * head b n) with (head b n - head b j) by (field; lra). lra. }
  assert (B : tail b j / total b < eps).
  { apply (Rmult_lt_reg_r (total b)); [exact Q|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  lra.
Qed.
End Leak.

(* ------------------------------------------------------------------------------------------ comparison (Theorem 3) *)
Section Comparison.
Variables (alpha beta : nat -> R) (t0 : nat).
Hypotheses (Ha : forall t, 0 <= alpha t) (Hb : forall t, 0 <= beta t).
Hypotheses (Sa : ex_series alpha) (Sb : ex_series beta) (Pa : 0 < total alpha) (Pb : 0 < total beta).
Hypothesis below : forall t, (t0 <= t)%nat -> alpha t / total alpha <= beta t / total beta.

Lemma tails_compare j : (t0 <= j)%nat -> tail alpha j / total alpha <= tail beta j / total beta.
Proof.
  intros Hj. unfold Rdiv. rewrite !(Rmult_comm _ (/ _)), <- !tail_scal. unfold tail. apply Series_le.
  - intros n. assert (0 < / total alpha) by now apply Rinv_0_lt_compat. split.
    + apply Rmult_le_pos; [lra|apply Ha].
    + rewrite !(Rmult_comm (/ _)). apply below. lia.
  - apply (ex_series_scal_l (/ total beta) (fun n => beta (j + n)%nat)). now apply ex_series_from.
Qed.

(* Theorem 3 of the paper in its repaired form (erratum E21): no limit, no assumption that t0 is a receptive field *)
Theorem comparison eps i j : is_trf alpha eps i -> is_trf beta eps j -> (t0 <= j)%nat -> (i <= j)%nat.
Proof.
  intros [_ Mi] [Hj _] H. destruct (Nat.le_gt_cases i j) as [h|h]; [exact h|exfalso]. specialize (Mi j h).
  pose proof (tails_compare j H) as T.
  apply (Rmult_le_compat_r (total alpha * total beta)) in T; [|nra].
  replace (tail alpha j / total alpha * (total alpha * total beta)) with (tail alpha j * total beta) in T by (field; lra).
  replace (tail beta j / total beta * (total alpha * total beta)) with (tail beta j * total alpha) in T by (field; lra).
  nra.
Qed.

(* in terms of epsilon: it holds for every eps up to the share that beta has beyond t0 - 1 *)
Corollary comparison_small_eps eps i j : (1 <= t0)%nat -> eps <= tail beta (t0 - 1) / total beta ->
  is_trf alpha eps i -> is_trf beta eps j -> (i <= j)%nat.
Proof.
  intros H1 He Hi Hj. apply (comparison eps i j Hi Hj).
  destruct (Nat.le_gt_cases t0 j) as [h|h]; [exact h|exfalso]. destruct Hj as [Hj _].
  pose proof (tail_mono beta j (t0 - 1) Hb Sb ltac:(lia)) as M.
  apply (Rmult_le_compat_r (total beta)) in He; [|lra]. unfold Rdiv in He. rewrite Rmult_assoc, Rinv_l in He by lra. lra.
Qed.
End Comparison.

(* ------------------------------------------------------------- design: a falling factor narrows the receptive field *)
(* exp (-theta * phi) with rising phi: raising theta multiplies by a falling factor, so every share outside falls *)
Theorem falling_factor_narrows (g b : nat -> R) j n : (1 <= j)%nat -> (j <= n)%nat ->
  (forall t, 0 < g t) -> (forall t u, (t <= u)%nat -> g u <= g t) -> (forall t, 0 <= b t) -> 0 < b 0%nat ->
  outside_share (fun t => g t * b t) j n <= outside_share b j n.
Proof.
  intros Hj Hjn Pg Mg Hb H0.
  assert (Hc : forall t, 0 <= g t * b t) by (intros t; specialize (Pg t); specialize (Hb t); nra).
  assert (Hc0 : 0 < g 0%nat * b 0%nat) by (specialize (Pg 0%nat); nra).
  pose proof (factor_bound g b 1 j n Hjn Hb ltac:(intros t u Ht Hu; rewrite Rmult_1_l; apply Mg; lia)) as X.
  pose proof (head_pos _ j Hb H0 Hj) as P. pose proof (head_pos _ j Hc Hc0 Hj) as Q.
  pose proof (head_mono _ j n Hb Hjn) as P'. pose proof (head_mono _ j n Hc Hjn) as Q'.
  unfold outside_share. set (c := fun t => g t * b t) in *. rewrite Rmult_1_l in X.
  assert (G : head b j / head b n <= head c j / head c n); [|lra].
  apply (Rmult_le_reg_r (head b n * head c n)); [apply Rmult_lt_0_compat; lra|].
  replace (head b j / head b n * (head b n * head c n)) with (head b j * head c n) by (field; lra).
  replace (head c j / head c n * (head b n * head c n)) with (head c j * head b n) by (field; lra). lra.
Qed.
