(* The sharp bound on the share outside a window, from above and below, and that it is attained (Theorem A).

   The weights of a row are c t = exp (s t) * b t: content logits s, positional weights b. If no logit outside the window
   exceeds one inside by more than R, the share outside is at most T / (T + exp (-R) * H), where H and T are the sums of
   b inside and outside. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Rows.
Open Scope R_scope.

Definition weights (b s : nat -> R) (t : nat) : R := exp (s t) * b t.

Lemma weights_nonneg b s : (forall t, 0 <= b t) -> forall t, 0 <= weights b s t.
Proof. intros H t. apply Rmult_le_pos; [left; apply exp_pos|apply H]. Qed.

Lemma weights_pos b s t : 0 < b t -> 0 < weights b s t.
Proof. intros H. apply Rmult_lt_0_compat; [apply exp_pos|exact H]. Qed.

(* any factor a that is outside at most K times what it is inside: both sums exchanged *)
Lemma factor_bound (a b : nat -> R) (K : R) (j n : nat) : (j <= n)%nat -> (forall t, 0 <= b t) ->
  (forall t u, (t < j)%nat -> (j <= u < n)%nat -> a u <= K * a t) ->
  (head (fun t => a t * b t) n - head (fun t => a t * b t) j) * head b j
  <= K * head (fun t => a t * b t) j * (head b n - head b j).
Proof.
  intros Hjn Hb Ha. set (c := fun t => a t * b t).
  assert (U : forall u, (j <= u < n)%nat -> head b j * c u <= K * head c j * b u).
  { intros u Hu. unfold c at 1. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Hb|].
    rewrite Rmult_comm, <- !head_scal. apply head_le. intros t Ht. unfold c.
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Hb|]. now apply Ha. }
  pose proof (head_rise_le (fun u => head b j * c u) (fun u => K * head c j * b u) j n Hjn U) as H.
  rewrite !head_scal in H. lra.
Qed.

Lemma weights_exchange b s R j n : (j <= n)%nat -> (forall t, 0 <= b t) ->
  (forall t u, (t < j)%nat -> (j <= u < n)%nat -> s u - s t <= R) ->
  (head (weights b s) n - head (weights b s) j) * head b j
  <= exp R * head (weights b s) j * (head b n - head b j).
Proof.
  intros Hjn Hb Hs. apply (factor_bound (fun t => exp (s t)) b (exp R) j n Hjn Hb).
  intros t u Ht Hu. rewrite <- exp_plus. apply exp_le. specialize (Hs t u Ht Hu). lra.
Qed.

Section Bounds.
Variables (b s : nat -> R) (R : R) (j n : nat).
Hypotheses (Hj : (1 <= j)%nat) (Hjn : (j <= n)%nat) (Hb : forall t, 0 <= b t) (H0 : 0 < b 0%nat).

(* Theorem A (i), from above *)
Theorem share_upper :
  (forall t u, (t < j)%nat -> (j <= u < n)%nat -> s u - s t <= R) ->
  outside_share (weights b s) j n <= (head b n - head b j) / ((head b n - head b j) + exp (- R) * head b j).
Proof.
  intros Hs. pose proof (weights_exchange b s R j n Hjn Hb Hs) as X.
  pose proof (weights_nonneg b s Hb) as Hc. pose proof (weights_pos b s 0 H0) as Hc0.
  pose proof (head_pos _ j Hb H0 Hj) as P. pose proof (head_pos _ j Hc Hc0 Hj) as Q.
  pose proof (head_mono _ j n Hb Hjn) as P'. pose proof (head_mono _ j n Hc Hjn) as Q'.
  unfold outside_share. set (C := head (weights b s) n) in *. set (D := head (weights b s) j) in *.
  set (H := head b j) in *. set (B := head b n) in *.
  pose proof (exp_pos (- R)) as PR. assert (ER : exp (- R) * exp R = 1) by (rewrite <- exp_plus, Rplus_opp_l; apply exp_0).
  assert (Den : 0 < B - H + exp (- R) * H) by nra.
  apply (Rmult_le_reg_r ((B - H + exp (- R) * H) * C)); [apply Rmult_lt_0_compat; lra|].
  replace ((1 - D / C) * ((B - H + exp (- R) * H) * C)) with ((C - D) * (B - H) + exp (- R) * ((C - D) * H))
    by (field; lra).
  replace ((B - H) / (B - H + exp (- R) * H) * ((B - H + exp (- R) * H) * C)) with ((B - H) * C) by (field; lra).
  apply (Rmult_le_compat_l (exp (- R))) in X; [|lra].
  replace (exp (- R) * (exp R * D * (B - H))) with ((exp (- R) * exp R) * D * (B - H)) in X by ring.
  rewrite ER in X. lra.
Qed.

(* Theorem A (i), from below *)
Theorem share_lower :
  (forall t u, (t < j)%nat -> (j <= u < n)%nat -> s t - s u <= R) ->
  (head b n - head b j) / ((head b n - head b j) + exp R * head b j) <= outside_share (weights b s) j n.
Proof.
  intros Hs. pose proof (weights_nonneg b s Hb) as Hc. pose proof (weights_pos b s 0 H0) as Hc0.
  pose proof (head_pos _ j Hb H0 Hj) as P. pose proof (head_pos _ j Hc Hc0 Hj) as Q.
  pose proof (head_mono _ j n Hb Hjn) as P'. pose proof (head_mono _ j n Hc Hjn) as Q'.
  assert (X : head (weights b s) j * (head b n - head b j)
              <= exp R * (head (weights b s) n - head (weights b s) j) * head b j).
  { assert (U : forall u, (j <= u < n)%nat -> head (weights b s) j * b u <= exp R * head b j * weights b s u).
    { intros u Hu. unfold weights at 2. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Hb|].
      replace (exp R * head b j * exp (s u)) with (exp R * exp (s u) * head b j) by ring.
      rewrite <- head_scal. apply head_le. intros t Ht. unfold weights. apply Rmult_le_compat_r; [apply Hb|].
      rewrite <- exp_plus. apply exp_le. specialize (Hs t u Ht Hu). lra. }
    pose proof (head_rise_le (fun u => head (weights b s) j * b u)
                             (fun u => exp R * head b j * weights b s u) j n Hjn U) as X.
    rewrite !head_scal in X. lra. }
  unfold outside_share. set (C := head (weights b s) n) in *. set (D := head (weights b s) j) in *.
  set (H := head b j) in *. set (B := head b n) in *.
  pose proof (exp_pos R) as PR. assert (Den : 0 < B - H + exp R * H) by nra.
  apply (Rmult_le_reg_r ((B - H + exp R * H) * C)); [apply Rmult_lt_0_compat; lra|].
  replace ((1 - D / C) * ((B - H + exp R * H) * C)) with ((C - D) * (B - H) + exp R * (C - D) * H) by (field; lra).
  replace ((B - H) / (B - H + exp R * H) * ((B - H + exp R * H) * C)) with ((B - H) * C) by (field; lra).
  lra.
Qed.

(* Theorem A (i), attained: all logits inside at the bottom, all logits outside R above them *)
Theorem share_attained :
  outside_share (weights b (fun t => if Nat.ltb t j then 0 else R)) j n
  = (head b n - head b j) / ((head b n - head b j) + exp (- R) * head b j).
Proof.
  set (r := fun t => if Nat.ltb t j then 0 else R).
  assert (A : forall i, (i <= j)%nat -> head (weights b r) i = head b i).
  { intros i Hi. apply head_ext. intros t Ht. unfold weights, r.
    replace (Nat.ltb t j) with true by (symmetry; apply Nat.ltb_lt; lia). rewrite exp_0. ring. }
  assert (D : head (weights b r) n - head (weights b r) j = exp R * (head b n - head b j)).
  { pose proof (head_split b j (n - j)) as S1. pose proof (head_split (weights b r) j (n - j)) as S2.
    replace (j + (n - j))%nat with n in S1, S2 by lia.
    assert (Eq : head (fun t => weights b r (j + t)) (n - j) = exp R * head (fun t => b (j + t)%nat) (n - j)).
    { rewrite <- head_scal. apply head_ext. intros t _. unfold weights, r.
      replace (Nat.ltb (j + t) j) with false by (symmetry; apply Nat.ltb_ge; lia). reflexivity. }
    rewrite S1, S2, Eq. ring. }
  pose proof (head_pos _ j Hb H0 Hj) as P. pose proof (head_mono _ j n Hb Hjn) as P'.
  pose proof (A j ltac:(lia)) as Aj. unfold outside_share.
  replace (head (weights b r) n) with (exp R * (head b n - head b j) + head b j) by lra. rewrite Aj.
  rewrite exp_Ropp. pose proof (exp_pos R) as PR. field. repeat split; nra.
Qed.
End Bounds.

(* bounded logits: |s| <= M gives a spread of 2 M *)
Lemma spread_of_bound s M : (forall t, Rabs (s t) <= M) -> forall t u : nat, s u - s t <= 2 * M.
Proof.
  intros H t u. pose proof (H t) as Ht. pose proof (H u) as Hu.
  apply Rabs_le_between in Ht. apply Rabs_le_between in Hu. lra.
Qed.

(* the share outside is at most exp (2 M) times the tail of the positional weights over the first one *)
Lemma share_le_tail b s M j n : (1 <= j)%nat -> (j <= n)%nat -> (forall t, 0 <= b t) -> 0 < b 0%nat ->
  (forall t, Rabs (s t) <= M) ->
  outside_share (weights b s) j n <= exp (2 * M) * (head b n - head b j) / b 0%nat.
Proof.
  intros Hj Hjn Hb H0 Hs.
  apply Rle_trans with (1 := share_upper b s (2 * M) j n Hj Hjn Hb H0 (fun t u _ _ => spread_of_bound s M Hs t u)).
  pose proof (head_mono _ j n Hb Hjn) as P. pose proof (head_mono _ 1 j Hb Hj) as Q. simpl in Q.
  rewrite exp_Ropp. pose proof (exp_pos (2 * M)) as PR. set (K := exp (2 * M)) in *.
  set (T := head b n - head b j) in *. assert (0 <= T) by (unfold T; lra).
  assert (PK : 0 < / K) by now apply Rinv_0_lt_compat.
  assert (HP : 0 < head b j) by lra.
  apply Rle_trans with (T / (/ K * b 0%nat)).
  - unfold Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; [nra|].
    assert (/ K * b 0%nat <= / K * head b j) by (apply Rmult_le_compat_l; lra). lra.
  - right. field. lra.
Qed.
