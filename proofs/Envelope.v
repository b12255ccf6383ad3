(* Beyond biases by distance: weights of any origin between envelopes, with a sink; and the three answers.

   A family of rows says which weights a row of n tokens may have. It is
     windowed    if one window leaves less than eps outside, for all rows of the family;
     dispersing  if no key holds more than eps of a row that is long enough;
   the two exclude each other, and there are families that are neither. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Rows Sharp Windowed.
Open Scope R_scope.

(* --------------------------------------------------------------------------------------------- the envelope theorem *)
(* the share outside, with a sink z in the denominator *)
Definition share_with_sink (c : nat -> R) (z : R) (j n : nat) : R := (head c n - head c j) / (z + head c n).

(* c t <= K * up t, whatever made it (content, gates, the position of the row); the nearest key and the sink together
   have at least the weight lo: then one window serves all *)
Theorem envelope (up : nat -> R) (K lo : R) :
  (forall t, 0 <= up t) -> 0 < K -> 0 < lo -> ex_series up ->
  forall eps, 0 < eps -> exists j0, forall j n c z, (1 <= j)%nat -> (j0 <= j)%nat -> (j <= n)%nat ->
    (forall t, 0 <= c t <= K * up t) -> 0 <= z -> lo <= z + c 0%nat -> share_with_sink c z j n < eps.
Proof.
  intros Hu HK Hlo Hs eps He. assert (P : 0 < lo * eps / K) by (apply Rdiv_lt_0_compat; nra).
  pose proof (is_lim_tail up Hs) as L. apply is_lim_seq_spec in L. destruct (L (mkposreal _ P)) as [j0 Hj0]. exists j0.
  intros j n c z H1 Hj Hjn Hc Hz Hl. specialize (Hj0 j Hj). simpl in Hj0. rewrite Rminus_0_r in Hj0.
  rewrite Rabs_right in Hj0 by (apply Rle_ge; now apply tail_nonneg).
  pose proof (head_rise_le c (fun t => K * up t) j n Hjn ltac:(intros; apply Hc)) as T. rewrite !head_scal in T.
  assert (U : head up n - head up j <= tail up j).
  { pose proof (head_le_total up n Hu Hs) as Q. rewrite (head_tail up j Hs) in Q. lra. }
  pose proof (head_mono c 1 n ltac:(intros; apply Hc) ltac:(lia)) as D. simpl in D.
  unfold share_with_sink. apply (Rmult_lt_reg_r (z + head c n)); [lra|].
  unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rle_lt_trans with (K * tail up j); [apply Rle_trans with (1 := T); nra|].
  apply (Rmult_lt_compat_l K) in Hj0; [|exact HK]. replace (K * (lo * eps / K)) with (lo * eps) in Hj0 by (field; lra).
  nra.
Qed.

(* one window for all weights below multiples of `up`, with a sink z or without *)
Definition window_below (up : nat -> R) : Prop :=
  forall K lo eps, 0 < K -> 0 < lo -> 0 < eps -> exists j0, forall j n c z, (1 <= j)%nat -> (j0 <= j)%nat -> (j <= n)%nat ->
    (forall t, 0 <= c t <= K * up t) -> 0 <= z -> lo <= z + c 0%nat -> share_with_sink c z j n < eps.

Theorem convergent_window_below (up : nat -> R) : (forall t, 0 <= up t) -> ex_series up -> window_below up.
Proof. intros Hu Hs K lo eps HK Hlo He. now apply (envelope up K lo). Qed.

Section SinkOutput.
Context {E : NormedModule R_AbsRing}.

(* attention with a sink: the softmax has z more in its denominator *)
Definition output_with_sink (c : nat -> R) (z : R) (v : nat -> E) (j : nat) : E :=
  scal (/ (z + head c j)) (weighted c v j).

Theorem truncation_with_sink c z v l j n : (j <= n)%nat -> (forall t, 0 <= c t) -> 0 <= z -> 0 < z + head c j ->
  (forall t, norm (v t) <= l) ->
  norm (minus (output_with_sink c z v n) (output_with_sink c z v j)) <= 2 * l * share_with_sink c z j n.
Proof.
  intros Hjn Hc Hz Hp Hv. pose proof (head_mono c j n Hc Hjn) as M. pose proof (head_nonneg c j Hc) as N.
  assert (Hl : 0 <= l) by (apply Rle_trans with (1 := norm_ge_0 (v 0%nat)); apply Hv).
  unfold output_with_sink. set (x := weighted c v n). set (y := weighted c v j).
  set (p := z + head c n) in *. set (q := z + head c j) in *. assert (Pp : 0 < p) by (unfold p, q in *; lra).
  assert (Eq : minus (scal (/ p) x) (scal (/ q) y) = plus (scal (/ p) (minus x y)) (scal (/ p - / q) y)).
  { replace (/ p - / q) with (plus (/ p) (opp (/ q))) by reflexivity.
    rewrite (@scal_distr_r R_Ring E), (@scal_opp_l R_Ring E). rewrite plus_assoc. unfold minus at 1. f_equal.
    rewrite <- (@scal_distr_l R_Ring E). f_equal. symmetry. rewrite plus_comm. apply plus_minus. }
  apply Rle_trans with (norm (plus (scal (/ p) (minus x y)) (scal (/ p - / q) y))); [right; f_equal; exact Eq|].
  apply Rle_trans with (1 := @norm_triangle R_AbsRing E _ _). rewrite !norm_scal_eq.
  pose proof (weighted_rise_norm c v l j n Hjn Hc ltac:(intros; apply Hv)) as A. fold x in A. fold y in A.
  pose proof (weighted_norm c v l j Hc Hv) as B. fold y in B.
  assert (I : / p <= / q) by (apply Rinv_le_contravar; unfold p, q in *; lra).
  assert (Ip : 0 < / p) by now apply Rinv_0_lt_compat.
  rewrite (Rabs_right (/ p)) by lra. rewrite (Rabs_left1 (/ p - / q)) by lra.
  unfold share_with_sink. fold p. set (T := head c n - head c j) in *. assert (HT : 0 <= T) by (unfold T; lra).
  assert (D : - (/ p - / q) * head c j <= T * / p).
  { replace (- (/ p - / q)) with (T * / p * / q) by (unfold T, p, q; field; unfold p, q in *; lra).
    apply Rle_trans with (T * / p * / q * q).
    - apply Rmult_le_compat_l; [|unfold q; lra]. repeat apply Rmult_le_pos; try lra; left; now apply Rinv_0_lt_compat.
    - right. field. lra. }
  assert (X1 : / p * norm (minus x y) <= / p * (l * T)) by (apply Rmult_le_compat_l; lra).
  assert (X2 : - (/ p - / q) * norm y <= - (/ p - / q) * (l * head c j)) by (apply Rmult_le_compat_l; lra).
  assert (X3 : - (/ p - / q) * (l * head c j) <= l * (T * / p)).
  { replace (- (/ p - / q) * (l * head c j)) with (l * (- (/ p - / q) * head c j)) by ring.
    now apply Rmult_le_compat_l. }
  unfold Rdiv. lra.
Qed.
End SinkOutput.

(* ------------------------------------------------------------------------------- the class of all biases in a range *)
(* every row may have its own bias r, anywhere between lo and hi *)
Definition class_windowed (E : NormedModule R_AbsRing) (lo hi : nat -> R) : Prop :=
  forall M V eps, 0 <= M -> 0 <= V -> 0 < eps ->
  exists j0, forall (j n : nat) (r s : nat -> R) (v : nat -> E), (1 <= j)%nat -> (j0 <= j)%nat -> (j <= n)%nat ->
    (forall t, lo t <= r t <= hi t) -> (forall t, Rabs (s t) <= M) -> (forall t, norm (v t) <= V) ->
    let c := weights (fun t => exp (r t)) s in
    norm (minus (output c v n) (output c v j)) < eps.

Theorem class_windowed_iff (E : NormedModule R_AbsRing) (lo hi : nat -> R) (u : E) :
  0 < norm u -> (forall t, lo t <= hi t) -> (class_windowed E lo hi <-> ex_series (fun t => exp (hi t))).
Proof.
  intros Hu Hlh. split.
  - intros W. apply (windowed_is_convergent E (fun t => exp (hi t)) (fun t => Rlt_le _ _ (exp_pos _)) (exp_pos _) u Hu).
    intros M V eps HM HV He. destruct (W M V eps HM HV He) as [j0 H]. exists j0. intros j n s v H1 Hj Hjn Hs Hv.
    apply (H j n hi s v H1 Hj Hjn); [|exact Hs|exact Hv]. intros t. split; [apply Hlh|lra].
  - intros Hs M V eps HM HV He.
    destruct (envelope (fun t => exp (hi t)) (exp M) (exp (- M) * exp (lo 0%nat))
                (fun t => Rlt_le _ _ (exp_pos _)) (exp_pos M)
                (Rmult_lt_0_compat _ _ (exp_pos _) (exp_pos _)) Hs (eps / (2 * (V + 1)))) as [j0 H].
    { apply Rdiv_lt_0_compat; lra. }
    exists j0. intros j n r s v H1 Hj Hjn Hr Hsb Hv c.
    assert (Hc : forall t, 0 <= c t) by (apply weights_nonneg; intros; left; apply exp_pos).
    assert (Hc0 : 0 < c 0%nat) by (apply weights_pos, exp_pos).
    assert (B : forall t, exp (- M) <= exp (s t) <= exp M).
    { intros t. specialize (Hsb t). apply Rabs_le_between in Hsb. split; apply exp_le; lra. }
    specialize (H j n c 0 H1 Hj Hjn). apply Rle_lt_trans with (1 := truncation c v V j n H1 Hjn Hc Hc0 Hv).
    assert (S : share_with_sink c 0 j n < eps / (2 * (V + 1))).
    { apply H; [|lra|].
      - intros t. split; [apply Hc|]. unfold c, weights. destruct (B t), (Hr t).
        apply Rmult_le_compat; try (left; apply exp_pos); [lra|]. now apply exp_le.
      - rewrite Rplus_0_l. unfold c, weights. destruct (B 0%nat), (Hr 0%nat).
        apply Rmult_le_compat; try (left; apply exp_pos); [lra|]. now apply exp_le. }
    pose proof (head_pos c n Hc Hc0 ltac:(lia)) as P.
    assert (Eq : share_with_sink c 0 j n = outside_share c j n).
    { unfold share_with_sink, outside_share. rewrite Rplus_0_l. field. lra. }
    rewrite Eq in S. pose proof (outside_share_bounds c j n H1 Hjn Hc Hc0) as [S0 _].
    apply (Rmult_lt_compat_l (2 * (V + 1))) in S; [|lra].
    replace (2 * (V + 1) * (eps / (2 * (V + 1)))) with eps in S by (field; lra). nra.
Qed.

(* ------------------------------------------------------------------------------------------------------ dispersion *)
(* bounded logits (RoPE, NoPE, T5, any bias bounded from both sides): no key of a row of n holds more than e^{2M} / n *)
Theorem dispersion (M : R) (c : nat -> R) (n t : nat) :
  (t < n)%nat -> (forall s, (s < n)%nat -> exp (- M) <= c s <= exp M) -> c t / head c n <= exp (2 * M) / INR n.
Proof.
  intros Ht Hc. assert (Hn : 0 < INR n) by (apply lt_0_INR; lia).
  pose proof (exp_pos (- M)) as P1. pose proof (exp_pos M) as P2.
  assert (Hm : INR n * exp (- M) <= head c n).
  { rewrite <- head_const. apply head_le. intros s Hs. now apply Hc. }
  assert (Hp : 0 < INR n * exp (- M)) by nra.
  apply Rle_trans with (exp M / (INR n * exp (- M))).
  - unfold Rdiv. apply Rmult_le_compat; [destruct (Hc t Ht); lra|left; apply Rinv_0_lt_compat; lra|now apply Hc|].
    apply Rinv_le_contravar; lra.
  - right. rewrite exp_Ropp. replace (2 * M) with (M + M) by ring. rewrite exp_plus. field. split; lra.
Qed.

(* ----------------------------------------------------------------------------------------------- the three answers *)
Definition family := nat -> (nat -> R) -> Prop.

Definition has_window (rows : family) : Prop :=
  forall eps, 0 < eps -> exists j0, forall j n c, (1 <= j)%nat -> (j0 <= j)%nat -> (j <= n)%nat -> rows n c ->
    outside_share c j n < eps.

Definition disperses (rows : family) : Prop :=
  forall eps, 0 < eps -> exists N, forall n c t, (N <= n)%nat -> (t < n)%nat -> rows n c -> c t / head c n < eps.

Theorem window_or_dispersion (rows : family) : (forall n, (1 <= n)%nat -> exists c, rows n c /\ 0 < head c n) ->
  has_window rows -> disperses rows -> False.
Proof.
  intros Hex W D. destruct (W (/ 2) ltac:(lra)) as [j0 Hj]. set (j := S j0).
  assert (Pj : 0 < INR j) by (apply lt_0_INR; unfold j; lia).
  destruct (D (/ (2 * INR j))) as [N HN]. { apply Rinv_0_lt_compat. lra. }
  set (n := (N + j)%nat). destruct (Hex n ltac:(unfold n, j; lia)) as [c [Hc P]].
  specialize (Hj j n c ltac:(unfold j; lia) ltac:(unfold j; lia) ltac:(unfold n; lia) Hc).
  unfold outside_share in Hj.
  assert (B : head c j / head c n <= / 2); [|lra].
  unfold Rdiv. rewrite Rmult_comm, <- head_scal.
  apply Rle_trans with (head (fun _ => / (2 * INR j)) j).
  - apply head_le. intros t Ht. rewrite Rmult_comm. left. apply (HN n c t); [unfold n; lia|unfold n; lia|exact Hc].
  - rewrite head_const. right. field. lra.
Qed.

(* biases by distance with bounded logits *)
Definition rows_of (b : nat -> R) (M : R) : family :=
  fun n c => exists s, (forall t, Rabs (s t) <= M) /\ (forall t, c t = weights b s t).

Theorem convergent_has_window b M : (forall t, 0 <= b t) -> 0 < b 0%nat -> ex_series b -> has_window (rows_of b M).
Proof.
  intros Hb H0 Hs eps He.
  destruct (envelope b (exp M) (exp (- M) * b 0%nat) Hb (exp_pos M)
              (Rmult_lt_0_compat _ _ (exp_pos _) H0) Hs eps He) as [j0 H].
  exists j0. intros j n c H1 Hj Hjn [s [Hsb Hc]].
  assert (B : forall t, exp (- M) <= exp (s t) <= exp M).
  { intros t. specialize (Hsb t). apply Rabs_le_between in Hsb. split; apply exp_le; lra. }
  assert (Pc : forall t, 0 <= c t) by (intros t; rewrite Hc; now apply weights_nonneg).
  assert (P0 : 0 < c 0%nat) by (rewrite Hc; now apply weights_pos).
  specialize (H j n c 0 H1 Hj Hjn). unfold share_with_sink in H. rewrite !Rplus_0_l in H.
  pose proof (head_pos c n Pc P0 ltac:(lia)) as P. unfold outside_share.
  replace (1 - head c j / head c n) with ((head c n - head c j) / head c n) by (field; lra).
  apply H; [|lra|].
  - intros t. split; [apply Pc|]. rewrite Hc. apply Rmult_le_compat_r; [apply Hb|apply B].
  - rewrite Hc. apply Rmult_le_compat_r; [apply Hb|apply B].
Qed.

(* a divergent sum of bounded weights disperses: 1/n, 1/(n ln n), Sandwich, T5, no bias at all *)
Theorem divergent_disperses b K M : (forall t, 0 <= b t <= K) -> ~ ex_series b -> disperses (rows_of b M).
Proof.
  intros Hb Hd eps He. set (q := exp (2 * M) * (K + 1) / eps).
  assert (HK : 0 <= K) by (destruct (Hb 0%nat); lra).
  destruct (head_unbounded b ltac:(intros; apply Hb) Hd q) as [N HN]. exists N. intros n c t Hn Ht [s [Hsb Hc]].
  assert (B : forall t, exp (- M) <= exp (s t) <= exp M).
  { intros u. specialize (Hsb u). apply Rabs_le_between in Hsb. split; apply exp_le; lra. }
  pose proof (exp_pos M) as PM. pose proof (exp_pos (- M)) as PN. pose proof (exp_pos (2 * M)) as PM2.
  assert (Pq : 0 < q) by (apply Rdiv_lt_0_compat; nra).
  pose proof (head_mono b N n ltac:(intros; apply Hb) Hn) as Hm.
  assert (L : exp (- M) * head b n <= head c n).
  { rewrite <- head_scal. apply head_le. intros u _. rewrite Hc. apply Rmult_le_compat_r; [apply Hb|apply B]. }
  assert (P : 0 < head c n) by nra.
  assert (U : c t <= exp M * K).
  { rewrite Hc. apply Rmult_le_compat; [left; apply exp_pos|apply Hb|apply B|apply Hb]. }
  apply (Rmult_lt_reg_r (head c n)); [exact P|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rle_lt_trans with (1 := U). apply Rlt_le_trans with (eps * (exp (- M) * head b n)); [|nra].
  apply Rlt_le_trans with (eps * (exp (- M) * q)).
  - unfold q. replace (eps * (exp (- M) * (exp (2 * M) * (K + 1) / eps)))
      with (exp (- M) * exp (2 * M) * (K + 1)) by (field; lra).
    rewrite <- exp_plus. replace (- M + 2 * M) with M by ring. nra.
  - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra.
Qed.

(* neither, first example: logits that are multiplied by ln n (a temperature that grows with the row). One key, as far
   away as one likes, can hold half of the row. *)
Definition rows_log_temperature : family :=
  fun n c => exists s, (forall t, Rabs (s t) <= 1) /\ (forall t, c t = exp (ln (INR n) * s t)).

Lemma log_temperature_far_key n : (1 <= n)%nat -> exists c, rows_log_temperature n c /\
  (forall t, 0 < c t) /\ / 2 <= c (n - 1)%nat / head c n.
Proof.
  intros Hn. assert (Pn : 0 < INR n) by (apply lt_0_INR; lia).
  set (s := fun t => if Nat.eqb t (n - 1) then 1 else 0). exists (fun t => exp (ln (INR n) * s t)). split; [|split].
  - exists s. split; [|reflexivity]. intros t. unfold s. destruct (Nat.eqb t (n - 1)); [rewrite Rabs_R1|rewrite Rabs_R0]; lra.
  - intros t. apply exp_pos.
  - assert (F : exp (ln (INR n) * s (n - 1)%nat) = INR n).
    { unfold s. rewrite Nat.eqb_refl, Rmult_1_r. now apply exp_ln. }
    assert (H : head (fun t => exp (ln (INR n) * s t)) (n - 1) = INR (n - 1)).
    { rewrite <- (Rmult_1_r (INR (n - 1))), <- head_const. apply head_ext. intros t Ht. unfold s.
      replace (Nat.eqb t (n - 1)) with false by (symmetry; apply Nat.eqb_neq; lia). rewrite Rmult_0_r. apply exp_0. }
    assert (Hh : head (fun t => exp (ln (INR n) * s t)) n = INR (n - 1) + INR n).
    { rewrite <- H, <- F at 1. set (f := fun t => exp (ln (INR n) * s t)).
      change (exp (ln (INR n) * s (n - 1)%nat)) with (f (n - 1)%nat).
      transitivity (head f (S (n - 1))); [f_equal; lia|reflexivity]. }
    rewrite F, Hh. assert (INR (n - 1) <= INR n) by (apply le_INR; lia).
    apply (Rmult_le_reg_r (INR (n - 1) + INR n)); [pose proof (pos_INR (n - 1)); lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by (pose proof (pos_INR (n - 1)); lra). lra.
Qed.

Theorem log_temperature_is_neither : ~ has_window rows_log_temperature /\ ~ disperses rows_log_temperature.
Proof.
  split.
  - intros W. destruct (W (/ 2) ltac:(lra)) as [j0 Hj]. set (n := S (S j0)).
    destruct (log_temperature_far_key n ltac:(unfold n; lia)) as [c [Hc [Pc F]]].
    specialize (Hj (S j0) n c ltac:(lia) ltac:(lia) ltac:(unfold n; lia) Hc). unfold outside_share in Hj.
    assert (Eq : head c n = head c (S j0) + c (n - 1)%nat).
    { unfold n. replace (S (S j0) - 1)%nat with (S j0) by lia. reflexivity. }
    pose proof (head_pos c n (fun t => Rlt_le _ _ (Pc t)) (Pc 0%nat) ltac:(unfold n; lia)) as P.
    replace (1 - head c (S j0) / head c n) with (c (n - 1)%nat / head c n) in Hj; [lra|].
    replace (head c (S j0)) with (head c n - c (n - 1)%nat) by lra. field. lra.
  - intros D. destruct (D (/ 2) ltac:(lra)) as [N HN]. set (n := S N).
    destruct (log_temperature_far_key n ltac:(unfold n; lia)) as [c [Hc [_ F]]].
    specialize (HN n c (n - 1)%nat ltac:(unfold n; lia) ltac:(unfold n; lia) Hc). lra.
Qed.

(* neither, second example: a bias that grows, r(t) = t; the farthest key holds more than half *)
Theorem growing_bias_is_neither : ~ has_window (rows_of (fun t => exp (INR t)) 0) /\ ~ disperses (rows_of (fun t => exp (INR t)) 0).
Proof.
  set (b := fun t => exp (INR t)).
  assert (Rows : forall n, rows_of b 0 n b).
  { intros n. exists (fun _ => 0). split; [intros; rewrite Rabs_R0; lra|]. intros t. unfold weights. rewrite exp_0. ring. }
  assert (E1 : 2 <= exp 1) by (pose proof (exp_ge_tangent 1); lra).
  assert (Hh : forall n, head b n <= b n).
  { induction n as [|n IH]; [unfold b; simpl; left; apply exp_pos|].
    change (head b n + b n <= b (S n)). unfold b at 3. rewrite S_INR, exp_plus. fold (b n).
    assert (0 < b n) by apply exp_pos. nra. }
  assert (Pb : forall t, 0 <= b t) by (intros; left; apply exp_pos).
  assert (F : forall n, / 2 <= b n / head b (S n)).
  { intros n. pose proof (head_pos b (S n) Pb (exp_pos _) ltac:(lia)) as P.
    apply (Rmult_le_reg_r (head b (S n))); [exact P|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    simpl. specialize (Hh n). lra. }
  split.
  - intros W. destruct (W (/ 2) ltac:(lra)) as [j0 Hj].
    specialize (Hj (S j0) (S (S j0)) b ltac:(lia) ltac:(lia) ltac:(lia) (Rows _)). unfold outside_share in Hj.
    specialize (F (S j0)). pose proof (head_pos b (S (S j0)) Pb (exp_pos _) ltac:(lia)) as P.
    replace (1 - head b (S j0) / head b (S (S j0))) with (b (S j0) / head b (S (S j0))) in Hj; [lra|].
    assert (Eq : head b (S (S j0)) = head b (S j0) + b (S j0)) by reflexivity.
    replace (head b (S j0)) with (head b (S (S j0)) - b (S j0)) by lra. field. lra.
  - intros D. destruct (D (/ 2) ltac:(lra)) as [N HN].
    specialize (HN (S N) b N ltac:(lia) ltac:(lia) (Rows _)). specialize (F N). lra.
Qed.
