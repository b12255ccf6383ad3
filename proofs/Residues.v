(* Residue classes: a series is the sum of its classes t = m n + r, in which floor(t/m) stands still.

   `along m r e` is the formula in n. If every class converges, so does the series; if one diverges and no weight is
   negative, it diverges. *)
From Coq Require Import Reals ZArith QArith Qreals Qround Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Monomials Formula.
Open Scope R_scope.

(* -------------------------------------------------------------------------------------------- the sum of the classes *)
Section Classes.
Variables (b : nat -> R) (m : nat).
Hypothesis Hm : (1 <= m)%nat.

Definition in_class (r t : nat) : R := if (t mod m =? r)%nat then b t else 0.

(* how many members of the class are before t *)
Definition members (r t : nat) : nat := ((t + (m - 1 - r)) / m)%nat.

Lemma members_step r t : (r < m)%nat -> members r (S t) = (members r t + if (t mod m =? r)%nat then 1 else 0)%nat /\
  ((t mod m = r)%nat -> (m * members r t + r)%nat = t).
Proof.
  intros Hr. unfold members. pose proof (Nat.div_mod t m ltac:(lia)) as E. pose proof (Nat.mod_upper_bound t m ltac:(lia)) as U.
  set (q := (t / m)%nat) in *. set (s := (t mod m)%nat) in *.
  assert (D : forall k, (k < m)%nat -> ((q * m + k) / m = q)%nat) by (intros k Hk; rewrite Nat.div_add_l, Nat.div_small; lia).
  assert (D1 : forall k, (m <= k < m + m)%nat -> ((q * m + k) / m = S q)%nat).
  { intros k Hk. replace (q * m + k)%nat with (S q * m + (k - m))%nat by lia. rewrite Nat.div_add_l, Nat.div_small; lia. }
  replace (S t + (m - 1 - r))%nat with (q * m + (s + (m - r)))%nat by lia.
  replace (t + (m - 1 - r))%nat with (q * m + (s + (m - 1 - r)))%nat by lia.
  destruct (Nat.eqb_spec s r) as [h|h].
  - rewrite (D1 (s + (m - r))%nat), (D (s + (m - 1 - r))%nat) by lia. lia.
  - split; [|lia]. destruct (Nat.lt_ge_cases s r).
    + rewrite (D (s + (m - r))%nat), (D (s + (m - 1 - r))%nat) by lia. lia.
    + rewrite (D1 (s + (m - r))%nat), (D1 (s + (m - 1 - r))%nat) by lia. lia.
Qed.

Lemma head_in_class r t : (r < m)%nat -> head (in_class r) t = head (fun n => b (m * n + r)%nat) (members r t).
Proof.
  intros Hr. induction t as [|t IH].
  - unfold members. rewrite Nat.div_small by lia. reflexivity.
  - destruct (members_step r t Hr) as [S1 S2]. cbn [head]. rewrite IH, S1. unfold in_class at 1.
    destruct (Nat.eqb_spec (t mod m) r) as [h|h]; [|rewrite Nat.add_0_r; ring].
    rewrite Nat.add_1_r. cbn [head]. now rewrite S2.
Qed.

Lemma members_unbounded r n : (r < m)%nat -> (n <= members r (m * n + r))%nat.
Proof.
  intros Hr. unfold members. replace (m * n + r + (m - 1 - r))%nat with (n * m + (m - 1))%nat by lia.
  rewrite Nat.div_add_l, Nat.div_small; lia.
Qed.

Lemma members_le r s t : (s <= t)%nat -> (members r s <= members r t)%nat.
Proof. intros H. apply Nat.div_le_mono; lia. Qed.

Lemma class_converges r : (r < m)%nat -> ex_series (fun n => b (m * n + r)%nat) -> ex_series (in_class r).
Proof.
  intros Hr [l L]. exists l. change (is_lim_seq (sum_n (in_class r)) l). change (is_lim_seq (sum_n (fun n => b (m * n + r)%nat)) l) in L.
  apply is_lim_seq_ext with (fun t => head (fun n => b (m * n + r)%nat) (members r (S t))).
  { intros t. rewrite <- head_in_class by exact Hr. apply head_sum_n. }
  apply (is_lim_seq_incr_1 (fun t => head (fun n => b (m * n + r)%nat) (members r t))).
  assert (H : is_lim_seq (head (fun n => b (m * n + r)%nat)) l).
  { apply is_lim_seq_incr_1. apply is_lim_seq_ext with (2 := L). intros n. symmetry. apply head_sum_n. }
  apply (filterlim_comp _ _ _ (members r) (head (fun n => b (m * n + r)%nat)) eventually eventually (Rbar_locally l)); [|exact H].
  intros P [N HN]. exists (m * N + r)%nat. intros t Ht. apply HN.
  apply Nat.le_trans with (members r (m * N + r)); [now apply members_unbounded|now apply members_le].
Qed.

Theorem classes_converge : (forall r, (r < m)%nat -> ex_series (fun n => b (m * n + r)%nat)) -> ex_series b.
Proof.
  intros H. set (part := fix part k t := match k with O => 0 | S i => part i t + in_class i t end).
  assert (P : forall k, (k <= m)%nat -> ex_series (part k)).
  { induction k as [|k IH]; intros Hk.
    - apply (ex_series_finite _ 0). reflexivity.
    - apply (ex_series_plus (part k) (in_class k)); [apply IH; lia|]. apply class_converges; [lia|apply H; lia]. }
  assert (V : forall t k, part k t = if (t mod m <? k)%nat then b t else 0).
  { intros t. induction k as [|k IH]; [reflexivity|]. cbn [part]. fold part. rewrite IH. unfold in_class.
    destruct (Nat.ltb_spec (t mod m) k), (Nat.eqb_spec (t mod m) k), (Nat.ltb_spec (t mod m) (S k)); try lia; ring. }
  apply ex_series_ext with (2 := P m (le_n m)). intros t. rewrite V.
  destruct (Nat.ltb_spec (t mod m) m); [reflexivity|]. pose proof (Nat.mod_upper_bound t m). lia.
Qed.

Theorem class_diverges r : (r < m)%nat -> (forall t, 0 <= b t) -> ~ ex_series (fun n => b (m * n + r)%nat) -> ~ ex_series b.
Proof.
  intros Hr Hb N E. apply N. assert (C : ex_series (in_class r)).
  { apply (ex_series_below (in_class r) b 0); [|exact E]. intros t _. unfold in_class.
    pose proof (Hb t). destruct (t mod m =? r)%nat; lra. }
  apply (ex_series_bounded _ (total (in_class r))); [intros n; apply Hb|]. intros n.
  apply Rle_trans with (head (fun k => b (m * k + r)%nat) (members r (m * n + r))).
  - apply head_mono; [intros k; apply Hb|]. now apply members_unbounded.
  - rewrite <- head_in_class by exact Hr. apply head_le_total; [|exact C].
    intros t. unfold in_class. destruct (t mod m =? r)%nat; [apply Hb|lra].
Qed.
End Classes.

(* ------------------------------------------------------------------------------------------ a formula along a class *)
(* k t + c, with rational numbers *)
Fixpoint line (e : formula) : option (Q * Q) :=
  match e with
  | Dist => Some (1, 0)%Q
  | Int z => Some (0%Q, inject_Z z)
  | Rat q => Some (0%Q, q)
  | Neg a => match line a with Some (k, c) => Some (- k, - c)%Q | None => None end
  | Add a b => match line a, line b with Some (k, c), Some (l, d) => Some (k + l, c + d)%Q | _, _ => None end
  | Sub a b => match line a, line b with Some (k, c), Some (l, d) => Some (k - l, c - d)%Q | _, _ => None end
  | Mul a b =>
      match line a, line b with
      | Some (k, c), Some (l, d) =>
          if Qeq_bool k 0 then Some (c * l, c * d)%Q else if Qeq_bool l 0 then Some (k * d, c * d)%Q else None
      | _, _ => None
      end
  | Div a b =>
      match line a, line b with
      | Some (k, c), Some (l, d) =>
          if Qeq_bool l 0 && negb (Qeq_bool d 0) then Some (k / d, c / d)%Q else None
      | _, _ => None
      end
  | _ => None
  end.

Lemma line_correct e k c x : line e = Some (k, c) -> eval e x = Q2R k * x + Q2R c.
Proof.
  assert (Z0 : Q2R 0 = 0) by (unfold Q2R; simpl; lra).
  revert k c. induction e; intros k c H; cbn [line] in H; try discriminate; cbn [eval].
  - injection H as <- <-. unfold Q2R. simpl. lra.
  - injection H as <- <-. rewrite Z0. unfold Q2R. simpl. lra.
  - injection H as <- <-. rewrite Z0. ring.
  - destruct (line e1) as [[k1 c1]|]; [|discriminate]. destruct (line e2) as [[k2 c2]|]; [|discriminate].
    injection H as <- <-. rewrite (IHe1 k1 c1 eq_refl), (IHe2 k2 c2 eq_refl), !Q2R_plus. ring.
  - destruct (line e1) as [[k1 c1]|]; [|discriminate]. destruct (line e2) as [[k2 c2]|]; [|discriminate].
    injection H as <- <-. rewrite (IHe1 k1 c1 eq_refl), (IHe2 k2 c2 eq_refl), !Q2R_minus. ring.
  - destruct (line e1) as [[k1 c1]|]; [|discriminate]. destruct (line e2) as [[k2 c2]|]; [|discriminate].
    rewrite (IHe1 k1 c1 eq_refl), (IHe2 k2 c2 eq_refl).
    destruct (Qeq_bool k1 0) eqn:E1; [|destruct (Qeq_bool k2 0) eqn:E2; [|discriminate]]; injection H as <- <-.
    + rewrite (Q2R_zero_of k1 E1), !Q2R_mult. ring.
    + rewrite (Q2R_zero_of k2 E2), !Q2R_mult. ring.
  - destruct (line e1) as [[k1 c1]|]; [|discriminate]. destruct (line e2) as [[k2 c2]|]; [|discriminate].
    rewrite (IHe1 k1 c1 eq_refl), (IHe2 k2 c2 eq_refl).
    destruct (Qeq_bool k2 0) eqn:E1; [|discriminate]. destruct (Qeq_bool c2 0) eqn:E2; [discriminate|]. injection H as <- <-.
    assert (N : ~ (c2 == 0)%Q) by now apply Qeq_bool_neq.
    rewrite (Q2R_zero_of k2 E1). unfold Qdiv. rewrite !Q2R_mult, !Q2R_inv by exact N.
    assert (Q2R c2 <> 0) by (intros Z; apply N, eqR_Qeq; now rewrite Z0). field. exact H.
  - destruct (line e) as [[k1 c1]|]; [|discriminate]. injection H as <- <-.
    rewrite (IHe k1 c1 eq_refl), !Q2R_opp. ring.
Qed.

Lemma floor_unique x z : IZR z <= x < IZR z + 1 -> floor x = IZR z.
Proof.
  intros H. unfold floor. f_equal. destruct (base_Int_part x) as [B1 B2].
  assert (IZR (Int_part x) < IZR (z + 1)) by (rewrite plus_IZR; lra). assert (IZR z < IZR (Int_part x + 1)) by (rewrite plus_IZR; lra).
  apply lt_IZR in H0, H1. lia.
Qed.

(* the floor of a line with a whole slope, at whole places *)
Definition still (a : formula) : formula :=
  match line a with
  | Some (k, c) =>
      let k := Qred k in
      match Qden k with 1%positive => Add (Mul (Int (Qnum k)) Dist) (Int (Qfloor c)) | _ => Floor a end
  | None => Floor a
  end.

Lemma still_correct a n : eval (still a) (INR n) = floor (eval a (INR n)).
Proof.
  unfold still. destruct (line a) as [[k c]|] eqn:L; [|reflexivity].
  destruct (Qden (Qred k)) eqn:D; try reflexivity. cbn [eval]. rewrite (line_correct a k c _ L).
  assert (K : Q2R k = IZR (Qnum (Qred k))) by (rewrite <- Q2R_red; unfold Q2R; rewrite D, Rinv_1; ring).
  rewrite K, INR_IZR_INZ, <- mult_IZR, <- plus_IZR. symmetry. apply floor_unique. rewrite plus_IZR.
  pose proof (Qle_Rle _ _ (Qfloor_le c)) as F1. pose proof (Qlt_Rlt _ _ (Qlt_floor c)) as F2.
  assert (J : forall z, Q2R (inject_Z z) = IZR z) by (intros z; unfold Q2R; simpl; field).
  rewrite J in F1, F2. rewrite plus_IZR in F2. lra.
Qed.

Section Along.
Variables (m r : Z).

Fixpoint along (e : formula) : formula :=
  match e with
  | Dist => Add (Mul (Int m) Dist) (Int r)
  | Int z => Int z
  | Rat q => Rat q
  | Pi => Pi
  | Add a b => Add (along a) (along b)
  | Sub a b => Sub (along a) (along b)
  | Mul a b => Mul (along a) (along b)
  | Div a b => Div (along a) (along b)
  | Neg a => Neg (along a)
  | Inv a => Inv (along a)
  | Exp a => Exp (along a)
  | Log a => Log (along a)
  | Sqrt a => Sqrt (along a)
  | Pow a n => Pow (along a) n
  | Real_pow a b => Real_pow (along a) (along b)
  | Power a b => Power (along a) (along b)
  | Cos a => Cos (along a)
  | Sin a => Sin (along a)
  | Abs a => Abs (along a)
  | Floor a => still (along a)
  | Min a b => Min (along a) (along b)
  | Max a b => Max (along a) (along b)
  | If_lt a b c d => If_lt (along a) (along b) (along c) (along d)
  | If_le a b c d => If_le (along a) (along b) (along c) (along d)
  end.

Lemma along_correct e n : eval (along e) (INR n) = eval e (IZR m * INR n + IZR r).
Proof.
  induction e; cbn [along eval]; try reflexivity; try (now rewrite ?IHe, ?IHe1, ?IHe2, ?IHe3, ?IHe4).
  rewrite still_correct. now rewrite IHe.
Qed.
End Along.
