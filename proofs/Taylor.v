(* The second Taylor remainder of ln (1 + d), exp d and (1 + d)^q, for d of either sign. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Logarithms.
Open Scope R_scope.

Definition between0 (d z : R) : Prop := 0 <= z <= d \/ d <= z <= 0.

Lemma between0_0 d : between0 d 0.
Proof. unfold between0. destruct (Rle_or_lt 0 d); [left|right]; lra. Qed.

Lemma between0_trans d z w : between0 d z -> between0 z w -> between0 d w.
Proof. unfold between0. intros [H|H] [K|K]; try (left; lra); right; lra. Qed.

Lemma mean_value (f f1 : R -> R) d : d <> 0 -> (forall z, between0 d z -> is_derive f z (f1 z)) ->
  exists z, between0 d z /\ z <> 0 /\ f d - f 0 = f1 z * d.
Proof.
  intros Hd H. assert (L : forall z, between0 d z -> derivable_pt_lim f z (f1 z)).
  { intros z Hz. apply is_derive_Reals. now apply H. }
  destruct (Rlt_or_le 0 d) as [P|P].
  - destruct (MVT_cor2 f f1 0 d P) as [z [E B]]; [intros z Hz; apply L; now left|].
    exists z. split; [left; lra|]. split; [lra|]. rewrite E. ring.
  - assert (N : d < 0) by lra. destruct (MVT_cor2 f f1 d 0 N) as [z [E B]]; [intros z Hz; apply L; now right|].
    exists z. split; [right; lra|]. split; [lra|].
    assert (E' : f 0 - f d = - (f1 z * d)) by (rewrite E; ring). lra.
Qed.

Lemma taylor2 (f f1 f2 : R -> R) d :
  (forall z, between0 d z -> is_derive f z (f1 z)) -> (forall z, between0 d z -> is_derive f1 z (f2 z)) ->
  exists z, between0 d z /\ f d = f 0 + f1 0 * d + f2 z / 2 * (d * d).
Proof.
  intros H1 H2. destruct (Req_dec d 0) as [->|Hd].
  { exists 0. split; [apply between0_0|]. ring. }
  set (A := (f d - f 0 - f1 0 * d) / (d * d)).
  set (p := fun z => f z - f1 0 * z - A * (z * z)). set (p1 := fun z => f1 z - f1 0 - 2 * A * z).
  assert (Dd : d * d <> 0) by (apply Rmult_integral_contrapositive_currified; assumption).
  destruct (mean_value p p1 d Hd) as [c [Bc [Nc Ec]]].
  { intros z Hz. unfold p, p1. specialize (H1 z Hz).
    assert (G : is_derive (fun z => f z - f1 0 * z - A * (z * z)) z (f1 z - f1 0 * 1 - A * (1 * z + z * 1))).
    { apply (is_derive_minus (fun z => f z - f1 0 * z) (fun z => A * (z * z))).
      - apply (is_derive_minus f (fun z => f1 0 * z)); [exact H1|].
        apply (is_derive_scal (fun z => z) z (f1 0) 1). apply (is_derive_id z).
      - apply (is_derive_scal (fun z => z * z) z A (1 * z + z * 1)). auto_derive; [exact Logic.I|ring]. }
    replace (f1 z - f1 0 - 2 * A * z) with (f1 z - f1 0 * 1 - A * (1 * z + z * 1)) by ring. exact G. }
  assert (Z : p1 c = 0).
  { assert (p d - p 0 = 0).
    { unfold p, A. field. exact Hd. }
    rewrite H in Ec. symmetry in Ec. apply Rmult_integral in Ec. tauto. }
  destruct (mean_value p1 (fun z => f2 z - 2 * A) c Nc) as [w [Bw [_ Ew]]].
  { intros z Hz. unfold p1. specialize (H2 z (between0_trans d c z Bc Hz)).
    assert (G : is_derive (fun z => f1 z - f1 0 - 2 * A * z) z (f2 z - 0 - 2 * A * 1)).
    { apply (is_derive_minus (fun z => f1 z - f1 0) (fun z => 2 * A * z)).
      - apply (is_derive_minus f1 (fun _ => f1 0)); [exact H2|apply (is_derive_const (f1 0) z)].
      - apply (is_derive_scal (fun z => z) z (2 * A) 1). apply (is_derive_id z). }
    replace (f2 z - 2 * A) with (f2 z - 0 - 2 * A * 1) by ring. exact G. }
  assert (W : f2 w = 2 * A).
  { rewrite Z in Ew. unfold p1 in Ew. assert (Q : (f2 w - 2 * A) * c = 0) by lra.
    apply Rmult_integral in Q. destruct Q; [lra|contradiction]. }
  exists w. split; [now apply between0_trans with c|]. rewrite W. unfold A. field. exact Hd.
Qed.

Lemma taylor_ln d : -1 < d -> exists z, between0 d z /\ ln (1 + d) = d + - / (2 * ((1 + z) * (1 + z))) * (d * d).
Proof.
  intros Hd. assert (P : forall z, between0 d z -> 0 < 1 + z) by (unfold between0; intros z [H|H]; lra).
  destruct (taylor2 (fun z => ln (1 + z)) (fun z => / (1 + z)) (fun z => - / ((1 + z) * (1 + z))) d) as [z [Bz E]].
  - intros z Hz. specialize (P z Hz). auto_derive; [exact P|]. field. lra.
  - intros z Hz. specialize (P z Hz). auto_derive; [lra|]. field. lra.
  - exists z. split; [exact Bz|]. rewrite E, Rplus_0_r, ln_1. specialize (P z Bz). field. lra.
Qed.

Lemma taylor_exp d : exists z, between0 d z /\ exp d = 1 + d + exp z / 2 * (d * d).
Proof.
  destruct (taylor2 exp exp exp d) as [z [Bz E]]; try (intros; apply is_derive_Reals, derivable_pt_lim_exp).
  exists z. split; [exact Bz|]. rewrite E, exp_0. ring.
Qed.

Lemma taylor_power q d : -1 < d ->
  exists z, between0 d z /\ Rpower (1 + d) q = 1 + q * d + q * (q - 1) / 2 * exp ((q - 2) * ln (1 + z)) * (d * d).
Proof.
  intros Hd. assert (P : forall z, between0 d z -> 0 < 1 + z) by (unfold between0; intros z [H|H]; lra).
  assert (S : forall s z, 0 < 1 + z -> Rpower (1 + z) s / (1 + z) = Rpower (1 + z) (s - 1)).
  { intros s z Hz. unfold Rminus. rewrite Rpower_plus, Rpower_Ropp, Rpower_1 by exact Hz. reflexivity. }
  destruct (taylor2 (fun z => Rpower (1 + z) q) (fun z => q * Rpower (1 + z) (q - 1))
              (fun z => q * (q - 1) * Rpower (1 + z) (q - 2)) d) as [z [Bz E]].
  - intros z Hz. specialize (P z Hz). rewrite <- S by exact P. unfold Rpower. auto_derive; [exact P|]. field. lra.
  - intros z Hz. specialize (P z Hz). replace (q - 2) with (q - 1 - 1) by ring. rewrite <- S by exact P.
    unfold Rpower. auto_derive; [exact P|]. field. lra.
  - exists z. split; [exact Bz|]. rewrite E. unfold Rpower. rewrite Rplus_0_r, ln_1, !Rmult_0_r, exp_0. field.
Qed.

Lemma taylor_cos d : exists z, between0 d z /\ cos d = 1 + - cos z / 2 * (d * d).
Proof.
  destruct (taylor2 cos (fun z => - sin z) (fun z => - cos z) d) as [z [Bz E]].
  - intros z _. apply is_derive_Reals, derivable_pt_lim_cos.
  - intros z _. auto_derive; [exact Logic.I|ring].
  - exists z. split; [exact Bz|]. rewrite E, cos_0, sin_0. ring.
Qed.

Lemma taylor_sin d : exists z, between0 d z /\ sin d = d + - sin z / 2 * (d * d).
Proof.
  destruct (taylor2 sin cos (fun z => - sin z) d) as [z [Bz E]].
  - intros z _. apply is_derive_Reals, derivable_pt_lim_sin.
  - intros z _. apply is_derive_Reals, derivable_pt_lim_cos.
  - exists z. split; [exact Bz|]. rewrite E, sin_0, cos_0. ring.
Qed.
