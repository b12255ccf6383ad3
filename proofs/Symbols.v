(* Constants made of logarithms and powers of whole numbers, kept exactly, so that those that must cancel do.

   The slope of log(2 t + 3) brings ln 2, that of sqrt(2 t + 3) brings 2^(1/2). A product of such numbers is a list of keys
   with rational exponents; a sum of products has rational coefficients. Equal sums need not have equal lists: then an
   interval is all that is known, and nothing false is. *)
From Coq Require Import Reals ZArith QArith Qreals Qround List Psatz Lia.
From Farfield Require Import Logarithms Monomials.
Import ListNotations.
Open Scope R_scope.

(* the key 2 p stands for the number p, the key 2 p + 1 for ln p *)
Definition key_value (k : positive) : R :=
  match k with xO p => IZR (Zpos p) | xI p => ln (IZR (Zpos p)) | xH => 1 end.

Definition root := list (positive * Q).

Fixpoint root_ln (m : root) : R := match m with [] => 0 | (k, q) :: m' => Q2R q * ln (key_value k) + root_ln m' end.
Definition root_value (m : root) : R := exp (root_ln m).

(* --------------------------------------------------------------------------------------------------------- products *)
Fixpoint root_insert (k : positive) (q : Q) (m : root) : root :=
  match m with
  | [] => if Qeq_bool q 0 then [] else [(k, q)]
  | (j, r) :: m' =>
      match Pos.compare k j with
      | Lt => (k, q) :: m
      | Gt => (j, r) :: root_insert k q m'
      | Eq => let s := Qred (q + r) in if Qeq_bool s 0 then m' else (j, s) :: m'
      end
  end.

Lemma root_insert_correct k q m : root_ln (root_insert k q m) = Q2R q * ln (key_value k) + root_ln m.
Proof.
  induction m as [|[j r] m IH]; cbn [root_insert].
  - destruct (Qeq_bool q 0) eqn:E; cbn [root_ln]; [rewrite (Q2R_zero_of q E)|]; ring.
  - destruct (Pos.compare k j) eqn:C; cbn [root_ln].
    + apply Pos.compare_eq in C. subst j. assert (S : Q2R (Qred (q + r)) = Q2R q + Q2R r) by now rewrite Q2R_red, Q2R_plus.
      destruct (Qeq_bool (Qred (q + r)) 0) eqn:E; cbn [root_ln]; [rewrite (Q2R_zero_of _ E) in S; nra|rewrite S; ring].
    + reflexivity.
    + rewrite IH. ring.
Qed.

Definition root_mul (a b : root) : root := fold_right (fun t r => root_insert (fst t) (snd t) r) b a.

Lemma root_mul_correct a b : root_value (root_mul a b) = root_value a * root_value b.
Proof.
  unfold root_value. rewrite <- exp_plus. f_equal. induction a as [|[k q] a IH]; cbn [root_mul fold_right fst snd root_ln].
  - ring.
  - fold (root_mul a b). rewrite root_insert_correct, IH. ring.
Qed.

Definition root_power (q : Q) (m : root) : root := map (fun t => (fst t, Qred (q * snd t))) m.

Lemma root_power_correct q m : root_value (root_power q m) = Rpower (root_value m) (Q2R q).
Proof.
  unfold Rpower, root_value. rewrite ln_exp. f_equal. induction m as [|[k r] m IH]; cbn [root_power map fst snd root_ln].
  - ring.
  - fold (root_power q m). rewrite IH, Q2R_red, Q2R_mult. ring.
Qed.

(* p^z as a rational number *)
Definition whole_power (p : positive) (z : Z) : Q :=
  match z with Z0 => 1 | Zpos n => inject_Z (Zpos (p ^ n)) | Zneg n => 1 # (p ^ n) end.

Lemma whole_power_correct p z : Q2R (whole_power p z) = exp (IZR z * ln (IZR (Zpos p))).
Proof.
  assert (P : 0 < IZR (Zpos p)) by (apply IZR_lt; lia).
  assert (E : forall n, IZR (Zpos (p ^ n)) = exp (IZR (Zpos n) * ln (IZR (Zpos p)))).
  { intros n. rewrite Pos2Z.inj_pow. rewrite <- (positive_nat_Z n) at 1. rewrite <- pow_IZR, <- Rpower_pow by exact P.
    unfold Rpower. now rewrite INR_IZR_INZ, positive_nat_Z. }
  destruct z as [|n|n]; cbn [whole_power].
  - rewrite Rmult_0_l, exp_0. unfold Q2R. simpl. lra.
  - unfold Q2R. cbn [inject_Z Qnum Qden]. rewrite E, Rinv_1. ring.
  - unfold Q2R. cbn [Qnum Qden]. rewrite E, Rmult_1_l, <- exp_Ropp. f_equal.
    replace (IZR (Zneg n)) with (- IZR (Zpos n)) by (rewrite <- opp_IZR; reflexivity). ring.
Qed.

(* whole powers of whole numbers are taken out: m = c * r *)
Fixpoint carry (m : root) : Q * root :=
  match m with
  | [] => (1%Q, [])
  | (k, q) :: m' =>
      let '(c, r) := carry m' in
      let z := Qfloor q in
      match k with
      | xO p =>
          if (Z.abs z <=? 64)%Z then
            let f := Qred (q - inject_Z z) in
            (Qred (whole_power p z * c), if Qeq_bool f 0 then r else (k, f) :: r)
          else (c, (k, q) :: r)
      | _ => (c, (k, q) :: r)
      end
  end.

Lemma carry_correct m c r : carry m = (c, r) -> root_value m = Q2R c * root_value r.
Proof.
  unfold root_value. revert c r. induction m as [|[k q] m IH]; intros c r H; cbn [carry] in H.
  - injection H as <- <-. unfold Q2R. simpl. rewrite exp_0. lra.
  - destruct (carry m) as [c0 r0]. specialize (IH c0 r0 eq_refl). cbn [root_ln]. rewrite exp_plus, IH.
    assert (Keep : (c0, (k, q) :: r0) = (c, r) ->
              exp (Q2R q * ln (key_value k)) * (Q2R c0 * exp (root_ln r0)) = Q2R c * exp (root_ln r)).
    { intros E. injection E as <- <-. cbn [root_ln]. rewrite exp_plus. ring. }
    destruct k as [p|p|]; [now apply Keep| |now apply Keep].
    destruct (Z.abs (Qfloor q) <=? 64)%Z; [|now apply Keep].
    set (f := Qred (q - inject_Z (Qfloor q))) in *.
    assert (F : Q2R q = IZR (Qfloor q) + Q2R f).
    { unfold f. rewrite Q2R_red, Q2R_minus. unfold Q2R at 3. cbn [inject_Z Qnum Qden]. rewrite Rinv_1. ring. }
    assert (R : Q2R f * ln (key_value (xO p)) + root_ln r0 = root_ln r).
    { apply pair_equal_spec in H. destruct H as [_ <-].
      destruct (Qeq_bool f 0) eqn:Z; [rewrite (Q2R_zero_of f Z); ring|reflexivity]. }
    apply pair_equal_spec in H. destruct H as [<- _]. rewrite <- R, Q2R_red, Q2R_mult, whole_power_correct, F, Rmult_plus_distr_r, !exp_plus.
    cbn [key_value]. ring.
Qed.

(* ------------------------------------------------------------------------------------------------- sums of products *)
Definition symbol := list (root * Q).

Fixpoint symbol_value (s : symbol) : R :=
  match s with [] => 0 | (m, q) :: s' => Q2R q * root_value m + symbol_value s' end.

Fixpoint root_compare (a b : root) : comparison :=
  match a, b with
  | [], [] => Eq
  | [], _ => Lt
  | _, [] => Gt
  | (k, q) :: a', (j, r) :: b' =>
      match Pos.compare k j with Eq => match Qcompare q r with Eq => root_compare a' b' | c => c end | c => c end
  end.

Lemma root_compare_correct a b : root_compare a b = Eq -> root_value a = root_value b.
Proof.
  intros H. unfold root_value. f_equal. revert b H.
  induction a as [|[k q] a IH]; intros [|[j r] b] H; cbn [root_compare] in H; try discriminate; [reflexivity|].
  destruct (Pos.compare k j) eqn:C; try discriminate. destruct (Qcompare q r) eqn:D; try discriminate.
  apply Pos.compare_eq in C. apply Qeq_alt, Qeq_eqR in D. cbn [root_ln]. now rewrite C, D, (IH b H).
Qed.

Fixpoint symbol_insert (m : root) (q : Q) (s : symbol) : symbol :=
  match s with
  | [] => [(m, q)]
  | (n, r) :: s' =>
      match root_compare m n with
      | Lt => (m, q) :: s
      | Gt => (n, r) :: symbol_insert m q s'
      | Eq => let t := Qred (q + r) in if Qeq_bool t 0 then s' else (n, t) :: s'
      end
  end.

Lemma symbol_insert_correct m q s : symbol_value (symbol_insert m q s) = Q2R q * root_value m + symbol_value s.
Proof.
  induction s as [|[n r] s IH]; cbn [symbol_insert symbol_value]; [reflexivity|].
  destruct (root_compare m n) eqn:C; cbn [symbol_value]; [|reflexivity|rewrite IH; ring].
  rewrite (root_compare_correct m n C).
  assert (S : Q2R (Qred (q + r)) = Q2R q + Q2R r) by now rewrite Q2R_red, Q2R_plus.
  destruct (Qeq_bool (Qred (q + r)) 0) eqn:E; cbn [symbol_value]; [rewrite (Q2R_zero_of _ E) in S; nra|rewrite S; ring].
Qed.

Definition symbol_add (s u : symbol) : symbol := fold_right (fun t r => symbol_insert (fst t) (snd t) r) u s.

Lemma symbol_add_correct s u : symbol_value (symbol_add s u) = symbol_value s + symbol_value u.
Proof.
  induction s as [|[m q] s IH]; cbn [symbol_add fold_right fst snd symbol_value]; [ring|].
  fold (symbol_add s u). rewrite symbol_insert_correct, IH. ring.
Qed.

(* q * m as a sum of one product *)
Definition symbol_of (q : Q) (m : root) : symbol := let '(c, r) := carry m in [(r, Qred (q * c))].

Lemma symbol_of_correct q m : symbol_value (symbol_of q m) = Q2R q * root_value m.
Proof.
  unfold symbol_of. destruct (carry m) as [c r] eqn:C. cbn [symbol_value].
  rewrite (carry_correct m c r C), Q2R_red, Q2R_mult. ring.
Qed.

Definition symbol_scale (m : root) (q : Q) (s : symbol) : symbol :=
  fold_right (fun t r => symbol_add (symbol_of (q * snd t) (root_mul m (fst t))) r) [] s.

Lemma symbol_scale_correct m q s : symbol_value (symbol_scale m q s) = Q2R q * root_value m * symbol_value s.
Proof.
  induction s as [|[n r] s IH]; cbn [symbol_scale fold_right fst snd symbol_value]; [ring|].
  fold (symbol_scale m q s). rewrite symbol_add_correct, symbol_of_correct, root_mul_correct, Q2R_mult, IH. ring.
Qed.

Definition symbol_mul (s u : symbol) : symbol :=
  fold_right (fun t r => symbol_add (symbol_scale (fst t) (snd t) u) r) [] s.

Lemma symbol_mul_correct s u : symbol_value (symbol_mul s u) = symbol_value s * symbol_value u.
Proof.
  induction s as [|[m q] s IH]; cbn [symbol_mul fold_right fst snd symbol_value]; [ring|].
  fold (symbol_mul s u). rewrite symbol_add_correct, symbol_scale_correct, IH. ring.
Qed.

Definition rational_symbol (q : Q) : symbol := if Qeq_bool q 0 then [] else [([], q)].

Lemma rational_symbol_correct q : symbol_value (rational_symbol q) = Q2R q.
Proof.
  unfold rational_symbol. destruct (Qeq_bool q 0) eqn:E; [now rewrite (Q2R_zero_of q E)|].
  cbn [symbol_value]. unfold root_value. cbn [root_ln]. rewrite exp_0. ring.
Qed.

(* -------------------------------------------------------------------------------------------------- prime numbers *)
(* the factors of n from p on, with the sign e of their exponents; what is left when the fuel ends is one factor *)
Fixpoint trial (fuel : nat) (p n : Z) (e : Q) (m : root) : root :=
  match n with
  | Zpos (xO _ | xI _) =>
      match fuel with
      | O => root_insert (xO (Z.to_pos n)) e m
      | S f =>
          if (n <? p * p)%Z then root_insert (xO (Z.to_pos n)) e m
          else if (n mod p =? 0)%Z then trial f p (n / p) e (root_insert (xO (Z.to_pos p)) e m)
          else trial f (p + 1) n e m
      end
  | _ => m
  end.

(* a positive rational number as a product of primes; that it is the product is checked *)
Definition factors (q : Q) : option root :=
  let m := trial 300 2 (Qnum q) 1 (trial 300 2 (Zpos (Qden q)) (-1) []) in
  match carry m with
  | (c, []) => if Qeq_bool c q then Some m else None
  | _ => None
  end.

Lemma factors_correct q m : factors q = Some m -> Q2R q = root_value m.
Proof.
  unfold factors. set (n := trial 300 2 (Qnum q) 1 (trial 300 2 (Zpos (Qden q)) (-1) [])).
  destruct (carry n) as [c [|t r]] eqn:C; [|discriminate]. destruct (Qeq_bool c q) eqn:E; [|discriminate].
  intros H. injection H as <-. rewrite (carry_correct n c [] C). unfold root_value. cbn [root_ln].
  rewrite exp_0, Rmult_1_r. apply Qeq_bool_eq in E. apply Qeq_eqR in E. now rewrite E.
Qed.

(* the logarithm of a product of numbers, and the exponential of a sum of logarithms of numbers *)
Fixpoint log_of_root (m : root) : option symbol :=
  match m with
  | [] => Some []
  | (xO p, q) :: m' =>
      match log_of_root m' with
      | Some s => if Pos.leb 2 p then Some (symbol_insert [(xI p, 1%Q)] q s) else None
      | None => None
      end
  | _ => None
  end.

Lemma log_symbol p : (2 <= p)%positive -> root_value [(xI p, 1%Q)] = ln (IZR (Zpos p)).
Proof.
  intros H. unfold root_value. cbn [root_ln key_value]. replace (Q2R 1) with 1 by (unfold Q2R; simpl; lra).
  rewrite Rmult_1_l, Rplus_0_r. apply exp_ln. apply ln_pos. apply (IZR_lt 1). lia.
Qed.

Lemma log_of_root_correct m s : log_of_root m = Some s -> symbol_value s = root_ln m.
Proof.
  revert s. induction m as [|[[p|p|] q] m IH]; intros s H; cbn [log_of_root] in H; try discriminate.
  - now injection H as <-.
  - destruct (log_of_root m) as [u|]; [|discriminate]. destruct (Pos.leb 2 p) eqn:P; [|discriminate]. injection H as <-.
    rewrite symbol_insert_correct, log_symbol by (now apply Pos.leb_le). cbn [root_ln key_value]. now rewrite (IH u eq_refl).
Qed.

Fixpoint exp_of_symbol (s : symbol) : option root :=
  match s with
  | [] => Some []
  | ([(xI p, r)], q) :: s' =>
      match exp_of_symbol s' with
      | Some m => if Pos.leb 2 p && Qeq_bool r 1 then Some (root_insert (xO p) q m) else None
      | None => None
      end
  | _ => None
  end.

Lemma exp_of_symbol_correct s m : exp_of_symbol s = Some m -> root_value m = exp (symbol_value s).
Proof.
  intros H. unfold root_value. f_equal. revert m H.
  induction s as [|[[|[[p|p|] r] [|t n]] q] s IH]; intros m H; cbn [exp_of_symbol] in H; try discriminate.
  - now injection H as <-.
  - destruct (exp_of_symbol s) as [u|]; [|discriminate]. destruct (Pos.leb 2 p) eqn:P; [|discriminate].
    destruct (Qeq_bool r 1) eqn:E; [|discriminate]. injection H as <-. rewrite root_insert_correct, (IH u eq_refl).
    cbn [symbol_value key_value]. f_equal. f_equal. rewrite <- log_symbol by (now apply Pos.leb_le).
    apply root_compare_correct. cbn [root_compare]. rewrite Pos.compare_refl. apply Qeq_bool_eq in E.
    apply Qeq_sym, Qeq_alt in E. now rewrite E.
Qed.
