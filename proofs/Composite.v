(* Certificates made of certificates: of residue classes, and of the summands of a weight. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Numbers Formula Certificates Residues.
Open Scope R_scope.
Open Scope lazy_bool_scope. (* a &&& b computes b only if it must *)

(* a x + b with a, b >= 0, and b at least 1 where it is asked for *)
Fixpoint above (least : Q) (e : formula) : bool :=
  match e with
  | Dist => Qle_bool least 0
  | Int z => Qle_bool least (inject_Z z)
  | Rat q => Qle_bool least q
  | Add a b => above least a && above 0 b || above 0 a && above least b
  | Mul a b | Div a b => Qle_bool least 0 && above 0 a && above 0 b
  | _ => false
  end.

Lemma above_correct e x : 0 <= x -> forall least, above least e = true -> Q2R least <= eval e x.
Proof.
  intros Hx. assert (Z0 : Q2R 0 = 0) by (unfold Q2R; simpl; lra).
  assert (L : forall p q, Qle_bool p q = true -> Q2R p <= Q2R q) by (intros p q H; now apply Qle_Rle, Qle_bool_iff).
  induction e; intros least H; cbn [above eval] in *; try discriminate.
  - apply L in H. lra.
  - apply L in H. unfold Q2R in H at 2. simpl in H. lra.
  - now apply L.
  - apply Bool.orb_true_iff in H. destruct H as [H|H]; apply Bool.andb_true_iff in H; destruct H as [H1 H2];
      specialize (IHe1 _ H1); specialize (IHe2 _ H2); lra.
  - apply Bool.andb_true_iff in H. destruct H as [H H2]. apply Bool.andb_true_iff in H. destruct H as [H0 H1].
    apply L in H0. specialize (IHe1 _ H1). specialize (IHe2 _ H2). rewrite Z0 in *. nra.
  - apply Bool.andb_true_iff in H. destruct H as [H H2]. apply Bool.andb_true_iff in H. destruct H as [H0 H1].
    apply L in H0. specialize (IHe1 _ H1). specialize (IHe2 _ H2). rewrite Z0 in *.
    assert (0 <= / eval e2 x) by (destruct IHe2 as [h|<-]; [left; now apply Rinv_0_lt_compat|rewrite Rinv_0; lra]).
    unfold Rdiv. nra.
Qed.

(* not negative, by its shape *)
Fixpoint nonneg (e : formula) : bool :=
  match e with
  | Dist | Exp _ | Sqrt _ | Abs _ | Real_pow _ _ | Power _ _ | Pi => true
  | Int z => (0 <=? z)%Z
  | Rat q => Qle_bool 0 q
  | Add a b | Mul a b | Div a b | Min a b | If_lt _ _ a b | If_le _ _ a b => nonneg a && nonneg b
  | Max a b => nonneg a || nonneg b
  | Inv a | Pow a _ => nonneg a
  | Log a => above 1 a
  | _ => false
  end.

Lemma nonneg_correct e x : 0 <= x -> nonneg e = true -> 0 <= eval e x.
Proof.
  intros Hx. assert (P : forall a, 0 <= a -> 0 <= / a).
  { intros a [H|<-]; [left; now apply Rinv_0_lt_compat|rewrite Rinv_0; lra]. }
  induction e; cbn [nonneg eval]; intros H; try discriminate;
    try (apply Bool.andb_true_iff in H; destruct H as [H1 H2]).
  - exact Hx.
  - apply IZR_le. now apply Z.leb_le.
  - apply Qle_bool_iff, Qle_Rle in H. unfold Q2R in H at 1. simpl in H. lra.
  - left. apply PI_RGT_0.
  - specialize (IHe1 H1). specialize (IHe2 H2). lra.
  - apply Rmult_le_pos; auto.
  - apply Rmult_le_pos; auto.
  - auto.
  - left. apply exp_pos.
  - apply Logarithms.ln_nonneg. apply (above_correct e x Hx) in H. unfold Q2R in H. simpl in H. lra.
  - apply sqrt_pos.
  - apply pow_le. auto.
  - left. apply exp_pos.
  - apply Logarithms.power_nonneg.
  - apply Rabs_pos.
  - apply Rmin_glb; auto.
  - apply Bool.orb_true_iff in H. destruct H as [H|H].
    + apply Rle_trans with (1 := IHe1 H), Rmax_l.
    + apply Rle_trans with (1 := IHe2 H), Rmax_r.
  - destruct (Rlt_dec _ _); auto.
  - destruct (Rle_dec _ _); auto.
Qed.

(* A tree is about a formula, or, where it begins with Next or ends as Done, about its classes from the r-th on. *)
Inductive tree : Type :=
| Bound (c : certificate)
| Classes (m : nat) (t : tree)          (* all classes of t modulo m *)
| Next (t u : tree)
| Done
| Sum (t u : tree)                      (* both summands *)
| One_class (m r : nat) (t : tree)
| First (t : tree)                      (* one summand *)
| Second (t : tree).

Definition is_list (t : tree) : bool := match t with Next _ _ | Done => true | _ => false end.

Section Check.
Variable prec : I.F.precision.

Fixpoint converges (t : tree) (m r : nat) (e : formula) : bool :=
  match t with
  | Bound c => proves_convergence c &&& check_auto prec c e
  | Classes k u => is_list u &&& Nat.leb 1 k &&& converges u k 0 e
  | Next u rest =>
      negb (is_list u) &&& is_list rest &&& converges u 0 0 (along (Z.of_nat m) (Z.of_nat r) e) &&& converges rest m (S r) e
  | Done => Nat.leb m r
  | Sum u w =>
      match e with
      | Add a b => negb (is_list u) &&& negb (is_list w) &&& converges u 0 0 a &&& converges w 0 0 b
      | _ => false
      end
  | _ => false
  end.

Fixpoint diverges (t : tree) (e : formula) : bool :=
  match t with
  | Bound c => proves_divergence c &&& check_auto prec c e
  | One_class m r u => Nat.leb (S r) m &&& nonneg e &&& diverges u (along (Z.of_nat m) (Z.of_nat r) e)
  | First u => match e with Add a b => nonneg a &&& nonneg b &&& diverges u a | _ => false end
  | Second u => match e with Add a b => nonneg a &&& nonneg b &&& diverges u b | _ => false end
  | _ => false
  end.

Lemma class_formula (b : nat -> R) e m r : (forall t, b t = eval e (INR t)) ->
  forall n, b (m * n + r)%nat = eval (along (Z.of_nat m) (Z.of_nat r) e) (INR n).
Proof. intros Hb n. rewrite along_correct, Hb. f_equal. rewrite plus_INR, mult_INR, <- !INR_IZR_INZ. reflexivity. Qed.

Lemma converges_correct t : forall m r e b, (forall i, b i = eval e (INR i)) -> converges t m r e = true ->
  if is_list t then forall s, (r <= s < m)%nat -> ex_series (fun n => b (m * n + s)%nat) else ex_series b.
Proof.
  induction t as [c|k u IH|u IHu w IHw| |u IHu w IHw|k s u _|u _|u _]; intros m r e b Hb H; cbn [converges is_list] in *;
    try discriminate.
  - apply Bool.andb_true_iff in H. destruct H as [H1 H2].
    apply (certified_convergence c); [now apply (check_auto_correct prec c e)|exact H1].
  - apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
    apply Nat.leb_le in H2. apply (classes_converge b k H2). intros s Hs.
    specialize (IH k 0%nat e b Hb H3). rewrite H1 in IH. apply IH. lia.
  - apply Bool.andb_true_iff in H. destruct H as [H H4]. apply Bool.andb_true_iff in H. destruct H as [H H3].
    apply Bool.andb_true_iff in H. destruct H as [H1 H2]. apply Bool.negb_true_iff in H1.
    intros s Hs. destruct (Nat.eq_dec s r) as [->|N].
    + specialize (IHu 0%nat 0%nat _ _ (class_formula b e m r Hb) H3). rewrite H1 in IHu. exact IHu.
    + specialize (IHw m (S r) e b Hb H4). rewrite H2 in IHw. apply IHw. lia.
  - apply Nat.leb_le in H. intros s Hs. lia.
  - destruct e as [| | | |e1 e2| | | | | | | | | | | | | | | | | | |]; try discriminate.
    apply Bool.andb_true_iff in H. destruct H as [H H4]. apply Bool.andb_true_iff in H. destruct H as [H H3].
    apply Bool.andb_true_iff in H. destruct H as [H1 H2]. apply Bool.negb_true_iff in H1, H2.
    specialize (IHu 0%nat 0%nat e1 (fun i => eval e1 (INR i)) (fun i => eq_refl) H3). rewrite H1 in IHu.
    specialize (IHw 0%nat 0%nat e2 (fun i => eval e2 (INR i)) (fun i => eq_refl) H4). rewrite H2 in IHw.
    apply ex_series_ext with (2 := ex_series_plus _ _ IHu IHw). intros i. now rewrite Hb.
Qed.

Theorem converges_sound t e b : (forall i, b i = eval e (INR i)) ->
  negb (is_list t) &&& converges t 0 0 e = true -> ex_series b.
Proof.
  intros Hb H. apply Bool.andb_true_iff in H. destruct H as [H1 H2]. apply Bool.negb_true_iff in H1.
  pose proof (converges_correct t 0 0 e b Hb H2) as G. rewrite H1 in G. exact G.
Qed.

Theorem diverges_sound t : forall e b, (forall i, b i = eval e (INR i)) -> diverges t e = true -> ~ ex_series b.
Proof.
  assert (S : forall e b c, (forall i, b i = eval e (INR i)) -> (forall i, eval e (INR i) <= c i) -> nonneg e = true ->
             ~ ex_series b -> ~ ex_series c).
  { intros e b c Hb Hc Hn. apply (diverges_above b c 0). intros i _. rewrite Hb. split; [|apply Hc].
    apply nonneg_correct; [apply pos_INR|exact Hn]. }
  assert (P : forall e i, nonneg e = true -> 0 <= eval e (INR i)) by (intros e i; apply nonneg_correct, pos_INR).
  induction t as [c|k u _|u _ w _| |u _ w _|k s u IH|u IH|u IH]; intros e b Hb H; cbn [diverges] in H; try discriminate.
  - apply Bool.andb_true_iff in H. destruct H as [H1 H2].
    apply (certified_divergence c); [now apply (check_auto_correct prec c e)|exact H1].
  - apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
    apply Nat.leb_le in H1. apply (class_diverges b k ltac:(lia) s ltac:(lia)); [intros i; rewrite Hb; now apply P|].
    apply (IH _ _ (class_formula b e k s Hb) H3).
  - destruct e as [| | | |e1 e2| | | | | | | | | | | | | | | | | | |]; try discriminate.
    apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
    apply (S e1 (fun i => eval e1 (INR i)) b); [reflexivity| |exact H1|now apply (IH e1)].
    intros i. rewrite Hb. cbn [eval]. pose proof (P e2 i H2). lra.
  - destruct e as [| | | |e1 e2| | | | | | | | | | | | | | | | | | |]; try discriminate.
    apply Bool.andb_true_iff in H. destruct H as [H H3]. apply Bool.andb_true_iff in H. destruct H as [H1 H2].
    apply (S e2 (fun i => eval e2 (INR i)) b); [reflexivity| |exact H2|now apply (IH e2)].
    intros i. rewrite Hb. cbn [eval]. pose proof (P e1 i H1). lra.
Qed.
End Check.
