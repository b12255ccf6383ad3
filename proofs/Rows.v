(* One row of attention: what a window leaves out, exactly and as a bound (the paper's Lemma, corrected).

   c t >= 0 is the unnormalised weight of the key at distance t, c 0 > 0; v t is the value there, in any normed module
   (R^d with any norm, for one). A row of n tokens has the distances t < n, a window of j tokens the distances t < j. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums.
Open Scope R_scope.

(* the share of a row of n tokens that lies outside a window of j: 1 - C_ij / C_ii in the paper *)
Definition outside_share (c : nat -> R) (j n : nat) : R := 1 - head c j / head c n.

Section Row.
Context {E : NormedModule R_AbsRing}.
Implicit Types (c : nat -> R) (v : nat -> E).

Fixpoint vector_head (f : nat -> E) (j : nat) : E :=
  match j with O => zero | S i => plus (vector_head f i) (f i) end.

Definition weighted c v (j : nat) : E := vector_head (fun t => scal (c t) (v t)) j.

(* the output of attention with a window of j tokens: o_i^j in the paper *)
Definition output c v (j : nat) : E := scal (/ head c j) (weighted c v j).

(* the mean of the values outside the window *)
Definition outside_mean c v (j n : nat) : E :=
  scal (/ (head c n - head c j)) (minus (weighted c v n) (weighted c v j)).

Lemma minus_plus_l (x y : E) : minus (plus x y) x = y.
Proof. unfold minus. rewrite (plus_comm x y), <- plus_assoc, plus_opp_r. apply plus_zero_r. Qed.

Lemma plus_minus (x y : E) : plus x (minus y x) = y.
Proof. unfold minus. rewrite plus_comm, <- plus_assoc, plus_opp_l. apply plus_zero_r. Qed.

Lemma norm_scal_eq (k : R) (x : E) : norm (scal k x) = Rabs k * norm x.
Proof.
  apply Rle_antisym; [exact (@norm_scal R_AbsRing E k x)|].
  destruct (Req_dec k 0) as [->|Hk]; [rewrite Rabs_R0, Rmult_0_l; apply norm_ge_0|].
  assert (Pk : 0 < Rabs k) by now apply Rabs_pos_lt.
  assert (Eq : x = scal (/ k) (scal k x)).
  { rewrite (@scal_assoc R_Ring E). change (mult (/ k) k) with (/ k * k). rewrite Rinv_l by exact Hk.
    symmetry. apply (@scal_one R_Ring E). }
  assert (H : norm x <= Rabs (/ k) * norm (scal k x)).
  { rewrite Eq at 1. exact (@norm_scal R_AbsRing E (/ k) (scal k x)). }
  rewrite Rabs_inv in H.
  apply (Rmult_le_compat_l (Rabs k)) in H; [|lra]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l in H by lra. exact H.
Qed.

(* the values outside the window, added up *)
Lemma weighted_rise_norm c v l j n : (j <= n)%nat -> (forall t, 0 <= c t) ->
  (forall t, (j <= t < n)%nat -> norm (v t) <= l) ->
  norm (minus (weighted c v n) (weighted c v j)) <= l * (head c n - head c j).
Proof.
  intros Hjn Hc. induction Hjn as [|n Hjn IH]; intros Hv.
  - rewrite minus_eq_zero, norm_zero. right. ring.
  - specialize (IH ltac:(intros; apply Hv; lia)).
    assert (Eq : minus (weighted c v (S n)) (weighted c v j)
                 = plus (minus (weighted c v n) (weighted c v j)) (scal (c n) (v n))).
    { unfold minus. change (weighted c v (S n)) with (plus (weighted c v n) (scal (c n) (v n))).
      rewrite <- !plus_assoc. f_equal. apply plus_comm. }
    rewrite Eq. apply Rle_trans with (1 := @norm_triangle R_AbsRing E _ _).
    assert (norm (scal (c n) (v n)) <= l * c n).
    { apply Rle_trans with (1 := @norm_scal R_AbsRing E (c n) (v n)).
      unfold abs; simpl. rewrite Rabs_right by (apply Rle_ge, Hc). rewrite (Rmult_comm l).
      apply Rmult_le_compat_l; [apply Hc|]. apply Hv. lia. }
    simpl. lra.
Qed.

Lemma weighted_norm c v l j : (forall t, 0 <= c t) -> (forall t, norm (v t) <= l) ->
  norm (weighted c v j) <= l * head c j.
Proof.
  intros Hc Hv. pose proof (weighted_rise_norm c v l 0 j ltac:(lia) Hc ltac:(intros; apply Hv)) as H.
  simpl in H. change (weighted c v 0) with (@zero E) in H. rewrite minus_zero_r, Rminus_0_r in H. exact H.
Qed.

Lemma output_norm c v l j : (1 <= j)%nat -> (forall t, 0 <= c t) -> 0 < c 0%nat -> (forall t, norm (v t) <= l) ->
  norm (output c v j) <= l.
Proof.
  intros Hj Hc H0 Hv. pose proof (head_pos c j Hc H0 Hj) as P. unfold output.
  apply Rle_trans with (1 := @norm_scal R_AbsRing E _ _). unfold abs; simpl.
  rewrite Rabs_right by (apply Rle_ge; left; now apply Rinv_0_lt_compat).
  apply (Rmult_le_reg_l (head c j)); [exact P|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
  rewrite Rmult_comm. now apply weighted_norm.
Qed.

(* outputs of row and window differ by two parts: what came in, and the window's part that lost weight *)
Lemma output_minus c v j n :
  minus (output c v n) (output c v j)
  = plus (scal (/ head c n) (minus (weighted c v n) (weighted c v j)))
         (scal (/ head c n - / head c j) (weighted c v j)).
Proof.
  unfold output. set (x := weighted c v n). set (y := weighted c v j).
  replace (/ head c n - / head c j) with (plus (/ head c n) (opp (/ head c j))) by reflexivity.
  rewrite (@scal_distr_r R_Ring E), (@scal_opp_l R_Ring E). rewrite plus_assoc. unfold minus at 1. f_equal.
  rewrite <- (@scal_distr_l R_Ring E). f_equal. symmetry. rewrite plus_comm. apply plus_minus.
Qed.

(* Erratum E14: the identity of the paper's Lemma with the right sign, outside mean minus window *)
Theorem difference_identity c v j n : head c j <> 0 -> head c n <> 0 -> head c n - head c j <> 0 ->
  minus (output c v n) (output c v j) = scal (outside_share c j n) (minus (outside_mean c v j n) (output c v j)).
Proof.
  intros Hj Hn Hd. rewrite output_minus. unfold outside_mean, output, outside_share.
  set (x := minus (weighted c v n) (weighted c v j)). set (y := weighted c v j).
  unfold minus. rewrite (@scal_distr_l R_Ring E), <- (@scal_opp_l R_Ring E), !(@scal_assoc R_Ring E).
  f_equal; f_equal; unfold mult; simpl; [field|unfold opp; simpl; field]; tauto.
Qed.

(* The paper's Lemma: the bound of the difference, with what is known of the values outside *)
Theorem truncation_outside c v l j n : (1 <= j)%nat -> (j <= n)%nat -> (forall t, 0 <= c t) -> 0 < c 0%nat ->
  (forall t, (j <= t < n)%nat -> norm (v t) <= l) ->
  norm (minus (output c v n) (output c v j)) <= outside_share c j n * (l + norm (output c v j)).
Proof.
  intros Hj Hjn Hc H0 Hv.
  pose proof (head_pos c j Hc H0 Hj) as Pj. pose proof (head_mono c j n Hc Hjn) as Pjn.
  rewrite output_minus. apply Rle_trans with (1 := @norm_triangle R_AbsRing E _ _).
  assert (A : norm (scal (/ head c n) (minus (weighted c v n) (weighted c v j))) <= outside_share c j n * l).
  { apply Rle_trans with (1 := @norm_scal R_AbsRing E _ _). unfold abs; simpl.
    rewrite Rabs_right by (apply Rle_ge; left; apply Rinv_0_lt_compat; lra).
    apply Rle_trans with (/ head c n * (l * (head c n - head c j))).
    - apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat; lra|]. now apply weighted_rise_norm.
    - right. unfold outside_share. field. lra. }
  assert (B : norm (scal (/ head c n - / head c j) (weighted c v j)) <= outside_share c j n * norm (output c v j)).
  { assert (Eq : scal (/ head c n - / head c j) (weighted c v j) = scal (- outside_share c j n) (output c v j)).
    { unfold output. rewrite (@scal_assoc R_Ring E). f_equal. unfold mult; simpl. unfold outside_share. field. lra. }
    rewrite Eq. apply Rle_trans with (1 := @norm_scal R_AbsRing E _ _). unfold abs; simpl.
    rewrite Rabs_Ropp, Rabs_right; [lra|]. unfold outside_share. apply Rle_ge.
    replace (1 - head c j / head c n) with ((head c n - head c j) / head c n) by (field; lra).
    apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
  lra.
Qed.

(* ... and with one bound for all values: delta(i, j) <= 2 l (1 - C_ij / C_ii) *)
Theorem truncation c v l j n : (1 <= j)%nat -> (j <= n)%nat -> (forall t, 0 <= c t) -> 0 < c 0%nat ->
  (forall t, norm (v t) <= l) ->
  norm (minus (output c v n) (output c v j)) <= 2 * l * outside_share c j n.
Proof.
  intros Hj Hjn Hc H0 Hv. apply Rle_trans with (1 := truncation_outside c v l j n Hj Hjn Hc H0 ltac:(intros; apply Hv)).
  pose proof (output_norm c v l j Hj Hc H0 Hv) as N.
  pose proof (head_pos c j Hc H0 Hj) as Pj. pose proof (head_mono c j n Hc Hjn) as Pjn.
  assert (0 <= outside_share c j n).
  { unfold outside_share. replace (1 - head c j / head c n) with ((head c n - head c j) / head c n) by (field; lra).
    apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra. }
  nra.
Qed.

(* It is attained: equal values u inside, -u outside *)
Theorem truncation_attained c (u : E) j n : (1 <= j)%nat -> (j <= n)%nat -> (forall t, 0 <= c t) -> 0 < c 0%nat ->
  norm (minus (output c (fun t => if Nat.ltb t j then u else opp u) n)
              (output c (fun t => if Nat.ltb t j then u else opp u) j))
  = 2 * norm u * outside_share c j n.
Proof.
  intros Hj Hjn Hc H0. set (v := fun t => if Nat.ltb t j then u else opp u).
  pose proof (head_pos c j Hc H0 Hj) as Pj. pose proof (head_mono c j n Hc Hjn) as Pjn.
  assert (W : forall i, (i <= j)%nat -> weighted c v i = scal (head c i) u).
  { induction i as [|i IH]; intros Hi; [symmetry; apply (@scal_zero_l R_Ring E)|].
    change (weighted c v (S i)) with (plus (weighted c v i) (scal (c i) (v i))). rewrite IH by lia.
    unfold v. replace (Nat.ltb i j) with true by (symmetry; apply Nat.ltb_lt; lia).
    rewrite <- (@scal_distr_r R_Ring E). reflexivity. }
  assert (D : minus (weighted c v n) (weighted c v j) = scal (- (head c n - head c j)) u).
  { clear Pjn. induction Hjn as [|n Hjn IH].
    - rewrite minus_eq_zero. replace (- (head c j - head c j)) with 0 by ring. symmetry. apply (@scal_zero_l R_Ring E).
    - assert (Eq : minus (weighted c v (S n)) (weighted c v j)
                   = plus (minus (weighted c v n) (weighted c v j)) (scal (c n) (v n))).
      { unfold minus. change (weighted c v (S n)) with (plus (weighted c v n) (scal (c n) (v n))).
        rewrite <- !plus_assoc. f_equal. apply plus_comm. }
      rewrite Eq, IH. unfold v. replace (Nat.ltb n j) with false by (symmetry; apply Nat.ltb_ge; lia).
      rewrite (@scal_opp_r R_Ring E), <- (@scal_opp_l R_Ring E), <- (@scal_distr_r R_Ring E). f_equal.
      unfold plus, opp; simpl. ring. }
  rewrite output_minus, D, W by lia. rewrite !(@scal_assoc R_Ring E), <- (@scal_distr_r R_Ring E).
  set (k := plus _ _). assert (K : k = - (2 * outside_share c j n)).
  { unfold k, plus, mult; simpl. unfold outside_share. field. lra. }
  rewrite K, norm_scal_eq, Rabs_Ropp, Rabs_right; [ring|].
  unfold outside_share. replace (1 - head c j / head c n) with ((head c n - head c j) / head c n) by (field; lra).
  apply Rle_ge, Rmult_le_pos; [lra|]. apply Rmult_le_pos; [lra|]. left. apply Rinv_0_lt_compat. lra.
Qed.
End Row.

(* the share lies in [0, 1), and is 0 for the whole row *)
Lemma outside_share_bounds c j n : (1 <= j)%nat -> (j <= n)%nat -> (forall t, 0 <= c t) -> 0 < c 0%nat ->
  0 <= outside_share c j n < 1.
Proof.
  intros Hj Hjn Hc H0. pose proof (head_pos c j Hc H0 Hj) as Pj. pose proof (head_mono c j n Hc Hjn) as Pjn.
  assert (0 < head c j / head c n) by (apply Rdiv_lt_0_compat; lra).
  unfold outside_share. split; [|lra].
  assert (head c j / head c n <= 1); [|lra].
  apply (Rmult_le_reg_r (head c n)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
