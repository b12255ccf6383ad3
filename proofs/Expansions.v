(* Expansions: sums of monomials whose coefficients are exact constants or intervals, and their arithmetic.

   An expansion c1*m1 + c2*m2 + ... holds a value v at x if there are numbers k1 in c1, k2 in c2, ... with
   v = k1*m1(x) + k2*m2(x) + ... Nothing is left out: what a series would cut off stays in an interval. *)
From Coq Require Import Reals ZArith QArith Qreals List Psatz Lia.
From Farfield Require Import Logarithms Ladder Numbers Monomials Taylor Symbols.
Import ListNotations.
Open Scope R_scope.
Open Scope lazy_bool_scope. (* a ||| b computes b only if it must *)

(* a rational number, an exact constant with an interval that holds it, or an interval alone *)
Inductive coefficient : Type := Exact (q : Q) | Symbol (s : symbol) (i : I.type) | Range (i : I.type).

Definition expansion := list (mono * coefficient).

Definition holds_c (c : coefficient) (k : R) : Prop :=
  match c with Exact q => k = Q2R q | Symbol s i => k = symbol_value s /\ within i k | Range i => within i k end.

Fixpoint holds (f : expansion) (x v : R) : Prop :=
  match f with
  | [] => v = 0
  | (a, c) :: g => exists k w, holds_c c k /\ holds g x w /\ v = k * meval a x + w
  end.

Section Arithmetic.
Variable prec : I.F.precision.

(* --------------------------------------------------------------------------------------------------- coefficients *)
Definition to_I (c : coefficient) : I.type := match c with Exact q => iQ prec q | Symbol _ i | Range i => i end.

Lemma to_I_correct c k : holds_c c k -> within (to_I c) k.
Proof. destruct c; simpl; [intros ->; apply iQ_correct|tauto|auto]. Qed.

Definition exactly (c : coefficient) : option symbol :=
  match c with Exact q => Some (rational_symbol q) | Symbol s _ => Some s | Range _ => None end.

Lemma exactly_correct c s k : exactly c = Some s -> holds_c c k -> k = symbol_value s.
Proof.
  destruct c; simpl; intros H Hc; [|now injection H as <-|discriminate].
  injection H as <-. now rewrite rational_symbol_correct.
Qed.

(* an exact constant, unless it is too long to be of use *)
Definition made (s : symbol) (i : I.type) : coefficient :=
  match s with
  | [] => Exact 0
  | [([], q)] => Exact q
  | _ => if Nat.leb (length s) 12 then Symbol s i else Range i
  end.

Lemma made_correct s i k : k = symbol_value s -> within i k -> holds_c (made s i) k.
Proof.
  intros E W. assert (G : holds_c (if Nat.leb (length s) 12 then Symbol s i else Range i) k).
  { destruct (Nat.leb (length s) 12); simpl; auto. }
  destruct s as [|[[|t m] q] [|u s]]; try exact G; cbn [made holds_c symbol_value] in *; rewrite E.
  - unfold Q2R. simpl. lra.
  - unfold root_value. cbn [root_ln]. rewrite exp_0. ring.
Qed.

(* the product of powers of whole numbers that a positive constant is *)
Definition as_root (c : coefficient) : option root :=
  match c with
  | Exact q => factors q
  | Symbol [(m, q)] _ => match factors q with Some f => Some (root_mul f m) | None => None end
  | _ => None
  end.

Lemma as_root_correct c m k : as_root c = Some m -> holds_c c k -> k = root_value m.
Proof.
  destruct c as [q|[|[r q] [|t s]] i|i]; cbn [as_root holds_c]; try discriminate.
  - intros H ->. now apply factors_correct.
  - destruct (factors q) as [f|] eqn:F; [|discriminate]. intros H [-> _]. injection H as <-.
    rewrite root_mul_correct, <- (factors_correct q f F). cbn [symbol_value]. ring.
Qed.

Definition both (op : symbol -> symbol -> symbol) (c d : coefficient) (i : I.type) : coefficient :=
  match exactly c, exactly d with Some s, Some u => made (op s u) i | _, _ => Range i end.

Lemma both_correct op c d i k l (f : R -> R -> R) :
  (forall s u, symbol_value (op s u) = f (symbol_value s) (symbol_value u)) ->
  holds_c c k -> holds_c d l -> within i (f k l) -> holds_c (both op c d i) (f k l).
Proof.
  intros Hop Hc Hd W. unfold both. destruct (exactly c) as [s|] eqn:Ec; [|exact W].
  destruct (exactly d) as [u|] eqn:Ed; [|exact W]. apply made_correct; [|exact W].
  now rewrite Hop, <- (exactly_correct c s k Ec Hc), <- (exactly_correct d u l Ed Hd).
Qed.

Definition cadd (c d : coefficient) : coefficient :=
  match c, d with
  | Exact q, Exact r => Exact (Qred (q + r))
  | _, _ => both symbol_add c d (iadd prec (to_I c) (to_I d))
  end.

Lemma cadd_correct c d k l : holds_c c k -> holds_c d l -> holds_c (cadd c d) (k + l).
Proof.
  intros Hc Hd. pose proof (iadd_correct prec _ _ k l (to_I_correct c k Hc) (to_I_correct d l Hd)) as W.
  pose proof (both_correct symbol_add c d _ k l Rplus symbol_add_correct Hc Hd W) as G. destruct c, d; try exact G.
  cbn [holds_c cadd] in *. now rewrite Q2R_red, Q2R_plus, Hc, Hd.
Qed.

Definition cmul (c d : coefficient) : coefficient :=
  match c, d with
  | Exact q, Exact r => Exact (Qred (q * r))
  | _, _ => both symbol_mul c d (imul prec (to_I c) (to_I d))
  end.

Lemma cmul_correct c d k l : holds_c c k -> holds_c d l -> holds_c (cmul c d) (k * l).
Proof.
  intros Hc Hd. pose proof (imul_correct prec _ _ k l (to_I_correct c k Hc) (to_I_correct d l Hd)) as W.
  pose proof (both_correct symbol_mul c d _ k l Rmult symbol_mul_correct Hc Hd W) as G. destruct c, d; try exact G.
  cbn [holds_c cmul] in *. now rewrite Q2R_red, Q2R_mult, Hc, Hd.
Qed.

Definition cinv (c : coefficient) : coefficient :=
  match c with
  | Exact q => Exact (Qred (/ q))
  | Symbol [(m, q)] i => made (symbol_of (/ q) (root_power (-1) m)) (iinv prec i)
  | Symbol _ i | Range i => Range (iinv prec i)
  end.

Lemma cinv_correct c k : holds_c c k -> k <> 0 -> holds_c (cinv c) (/ k).
Proof.
  intros Hc Hk. assert (N : forall q, Q2R q <> 0 -> ~ (q == 0)%Q).
  { intros q Nq E. apply Nq. apply Qeq_eqR in E. rewrite E. unfold Q2R. simpl. lra. }
  destruct c as [q|s i|i]; cbn [holds_c cinv] in *; [| |now apply iinv_correct].
  - rewrite Q2R_red, Q2R_inv; [now rewrite Hc|]. apply N. now rewrite <- Hc.
  - destruct Hc as [E W]. pose proof (iinv_correct prec _ _ W) as V. destruct s as [|[m q] [|t s]]; try exact V.
    apply made_correct; [|exact V]. cbn [symbol_value] in E. rewrite Rplus_0_r in E.
    assert (Pm : 0 < root_value m) by apply exp_pos. assert (Nq : Q2R q <> 0) by (intros Z; apply Hk; rewrite E, Z; ring).
    rewrite symbol_of_correct, root_power_correct, Q2R_inv by now apply N.
    replace (Q2R (-1)) with (-1) by (unfold Q2R; simpl; lra). rewrite Rpower_minus_1 by exact Pm. rewrite E.
    field. split; lra.
Qed.

Definition cpos (c : coefficient) : bool := ipos (to_I c).
Lemma cpos_correct c k : cpos c = true -> holds_c c k -> 0 < k.
Proof. intros H Hc. apply (ipos_correct _ _ H). now apply to_I_correct. Qed.

Definition czero (c : coefficient) : bool := match c with Exact q => Qeq_bool q 0 | _ => false end.
Lemma czero_correct c k : czero c = true -> holds_c c k -> k = 0.
Proof. destruct c; simpl; [intros H ->; now apply Q2R_zero_of|discriminate|discriminate]. Qed.

Definition cone (c : coefficient) : bool := match c with Exact q => Qeq_bool q 1 | _ => false end.
Lemma cone_correct c k : cone c = true -> holds_c c k -> k = 1.
Proof.
  destruct c; simpl; [intros H ->|discriminate|discriminate]. apply Qeq_bool_eq in H. apply Qeq_eqR in H. rewrite H.
  unfold Q2R. simpl. lra.
Qed.

(* ------------------------------------------------------------------------------------------------ sums and products *)
Fixpoint insert (a : mono) (c : coefficient) (f : expansion) : expansion :=
  match f with
  | [] => [(a, c)]
  | (b, d) :: g =>
      match mcmp a b with
      | Gt => (a, c) :: f
      | Eq => let s := cadd c d in if czero s then g else (b, s) :: g
      | Lt => (b, d) :: insert a c g
      end
  end.

Lemma insert_correct a c f x v k : holds f x v -> holds_c c k -> holds (insert a c f) x (k * meval a x + v).
Proof.
  revert v. induction f as [|[b d] g IH]; intros v Hf Hc; cbn [insert].
  - exists k, v. auto.
  - destruct Hf as [l [w [Hd [Hg ->]]]]. destruct (mcmp a b) eqn:C.
    + rewrite (meval_mcmp a b x C). pose proof (cadd_correct c d k l Hc Hd) as S.
      destruct (czero (cadd c d)) eqn:Z.
      * pose proof (czero_correct _ _ Z S). replace (k * meval b x + (l * meval b x + w)) with ((k + l) * meval b x + w) by ring.
        rewrite H, Rmult_0_l, Rplus_0_l. exact Hg.
      * exists (k + l), w. split; [exact S|]. split; [exact Hg|]. ring.
    + exists l, (k * meval a x + w). split; [exact Hd|]. split; [now apply IH|]. ring.
    + exists k, (l * meval b x + w). split; [exact Hc|]. split; [|reflexivity]. now exists l, w.
Qed.

Definition fadd (f g : expansion) : expansion := fold_right (fun t r => insert (fst t) (snd t) r) g f.

Lemma fadd_correct f g x v w : holds f x v -> holds g x w -> holds (fadd f g) x (v + w).
Proof.
  revert v. induction f as [|[a c] f IH]; intros v Hf Hg; simpl in *.
  - rewrite Hf, Rplus_0_l. exact Hg.
  - destruct Hf as [k [u [Hc [Hf ->]]]]. rewrite Rplus_assoc. apply insert_correct; [now apply IH|exact Hc].
Qed.

(* multiplied by one term *)
Definition fscale (a : mono) (c : coefficient) (f : expansion) : expansion :=
  map (fun t => (madd a (fst t), cmul c (snd t))) f.

Lemma fscale_correct a c f x k v : holds_c c k -> holds f x v -> holds (fscale a c f) x (k * meval a x * v).
Proof.
  intros Hc. revert v. induction f as [|[b d] f IH]; intros v Hf; simpl in *.
  - rewrite Hf. ring.
  - destruct Hf as [l [w [Hd [Hf ->]]]]. exists (k * l), (k * meval a x * w).
    split; [now apply cmul_correct|]. split; [now apply IH|]. rewrite meval_madd. ring.
Qed.

Definition fneg (f : expansion) : expansion := fscale [] (Exact (-1)) f.
Lemma fneg_correct f x v : holds f x v -> holds (fneg f) x (- v).
Proof.
  intros H. replace (- v) with (-1 * meval [] x * v) by (rewrite meval_nil; ring).
  apply fscale_correct; [|exact H]. simpl. unfold Q2R. simpl. lra.
Qed.

Definition constant (c : coefficient) : expansion := if czero c then [] else [([], c)].
Lemma constant_correct c k x : holds_c c k -> holds (constant c) x k.
Proof.
  intros H. unfold constant. destruct (czero c) eqn:Z; [now apply (czero_correct c)|].
  exists k, 0. split; [exact H|]. split; [reflexivity|]. rewrite meval_nil. ring.
Qed.

Definition product_of (f g : expansion) : expansion :=
  fold_right (fun t r => fadd (fscale (fst t) (snd t) g) r) [] f.

Lemma product_of_correct f g x v w : holds f x v -> holds g x w -> holds (product_of f g) x (v * w).
Proof.
  intros Hf Hg. revert v Hf. induction f as [|[a c] f IH]; intros v Hf; simpl in *.
  - rewrite Hf. ring.
  - destruct Hf as [k [u [Hc [Hf ->]]]]. rewrite Rmult_plus_distr_r. apply fadd_correct; [|now apply IH].
    now apply fscale_correct.
Qed.

(* ------------------------------------------------------------------------------------------- ranges on the half line *)
Variable K : list I.type.

Fixpoint range (f : expansion) : I.type :=
  match f with
  | [] => iZ prec 0
  | [(a, c)] => imul prec (to_I c) (mrange prec K a)
  | (a, c) :: g => iadd prec (imul prec (to_I c) (mrange prec K a)) (range g)
  end.

(* the range of f / (its first monomial) *)
Definition lead_range (f : expansion) : I.type :=
  match f with [] => iZ prec 0 | (a, _) :: _ => range (fscale (mneg a) (Exact 1) f) end.

(* two ways to see a range: term by term, or with the first monomial taken out *)
Definition enclose (f : expansion) : I.type :=
  match f with [] => iZ prec 0 | [_] => range f
  | (a, _) :: _ => imeet (range f) (imul prec (mrange prec K a) (lead_range f)) end.

(* at most `size` terms: the rest becomes one term with an interval *)
Definition size : nat := 8.
Fixpoint tidy_from (n : nat) (f : expansion) : expansion :=
  match n, f with
  | _, [] => []
  | O, (a, _) :: _ => [(a, Range (lead_range f))]
  | S m, t :: g => t :: tidy_from m g
  end.
Definition tidy (f : expansion) : expansion := tidy_from size f.

Definition fmul (f g : expansion) : expansion := tidy (product_of f g).

(* theta * f^2 as one term *)
Definition square_term (theta : I.type) (f : expansion) : expansion :=
  match f with
  | [] => []
  | (a, _) :: _ => [(madd a a, Range (imul prec theta (isqr prec (lead_range f))))]
  end.

Definition first_growing (f : expansion) : bool :=
  match f with [] => false | (a, _) :: _ => match msign a with Gt => true | _ => false end end.

Definition fnonpos (f : expansion) : bool :=
  match f with [] => true | _ => inonpos (lead_range f) ||| inonpos (range f) end.
Definition fnonneg (f : expansion) : bool :=
  match f with [] => true | _ => inonneg (lead_range f) ||| inonneg (range f) end.
Definition fneg_strict (f : expansion) : bool :=
  match f with [] => false | _ => ineg_strict (lead_range f) ||| ineg_strict (range f) end.
Definition fpos (f : expansion) : bool :=
  match f with [] => false | _ => ipos (lead_range f) ||| ipos (range f) end.

Variables (X x : R).
Hypothesis HK : forall i, within (known K i) (logs i X).
Hypothesis Hx : X <= x.

Lemma range_correct f v : holds f x v -> within (range f) v.
Proof.
  revert v. induction f as [|[a c] f IH]; intros v Hf; simpl in *.
  - rewrite Hf. apply iZ_correct.
  - destruct Hf as [k [w [Hc [Hf ->]]]].
    assert (T : within (imul prec (to_I c) (mrange prec K a)) (k * meval a x)).
    { apply imul_correct; [now apply to_I_correct|]. now apply mrange_correct with X. }
    destruct f as [|t g]; [|apply iadd_correct; [exact T|now apply IH]].
    simpl in Hf. rewrite Hf, Rplus_0_r. exact T.
Qed.

Lemma lead_range_correct a c f v : holds ((a, c) :: f) x v ->
  exists g, within (lead_range ((a, c) :: f)) g /\ v = meval a x * g.
Proof.
  intros H. exists (/ meval a x * v). pose proof (meval_pos a x) as P. split.
  - unfold lead_range. apply range_correct.
    replace (/ meval a x * v) with (1 * meval (mneg a) x * v) by (rewrite meval_mneg; ring).
    apply fscale_correct; [|exact H]. simpl. unfold Q2R. simpl. lra.
  - field. lra.
Qed.

Lemma enclose_correct f v : holds f x v -> within (enclose f) v.
Proof.
  destruct f as [|[a c] [|t g]]; intros H; [simpl in H; rewrite H; apply iZ_correct|now apply range_correct|].
  unfold enclose. apply imeet_correct; [now apply range_correct|].
  destruct (lead_range_correct a c (t :: g) v H) as [y [Hy ->]].
  apply imul_correct; [now apply mrange_correct with X|exact Hy].
Qed.

Lemma tidy_from_correct n f v : holds f x v -> holds (tidy_from n f) x v.
Proof.
  revert f v. induction n as [|n IH]; intros [|[a c] f] v H; cbn [tidy_from]; try exact H.
  - destruct (lead_range_correct a c f v H) as [g [Hg ->]]. exists g, 0. simpl. split; [exact Hg|]. split; [reflexivity|ring].
  - simpl in H. destruct H as [k [w [Hc [Hf ->]]]]. exists k, w. split; [exact Hc|]. split; [now apply IH|reflexivity].
Qed.

Lemma tidy_correct f v : holds f x v -> holds (tidy f) x v.
Proof. apply tidy_from_correct. Qed.

Lemma fmul_correct f g v w : holds f x v -> holds g x w -> holds (fmul f g) x (v * w).
Proof. intros Hf Hg. apply tidy_correct. now apply product_of_correct. Qed.

Lemma square_term_correct theta f h v : within theta h -> holds f x v -> holds (square_term theta f) x (h * (v * v)).
Proof.
  intros Ht H. destruct f as [|[a c] f]; [simpl in *; rewrite H; ring|].
  destruct (lead_range_correct a c f v H) as [g [Hg ->]]. unfold square_term. exists (h * (g * g)), 0.
  split; [apply imul_correct; [exact Ht|now apply isqr_correct]|]. split; [reflexivity|]. rewrite meval_madd. ring.
Qed.

Lemma fnonpos_correct f v : fnonpos f = true -> holds f x v -> v <= 0.
Proof.
  destruct f as [|[a c] f]; intros S H; [simpl in H; lra|]. unfold fnonpos in S. apply Bool.orb_true_iff in S. destruct S as [S|S].
  - destruct (lead_range_correct a c f v H) as [g [Hg ->]]. pose proof (inonpos_correct _ _ S Hg).
    pose proof (meval_pos a x). nra.
  - exact (inonpos_correct _ _ S (range_correct _ _ H)).
Qed.

Lemma fnonneg_correct f v : fnonneg f = true -> holds f x v -> 0 <= v.
Proof.
  destruct f as [|[a c] f]; intros S H; [simpl in H; lra|]. unfold fnonneg in S. apply Bool.orb_true_iff in S. destruct S as [S|S].
  - destruct (lead_range_correct a c f v H) as [g [Hg ->]]. pose proof (inonneg_correct _ _ S Hg).
    pose proof (meval_pos a x). nra.
  - exact (inonneg_correct _ _ S (range_correct _ _ H)).
Qed.

Lemma fneg_strict_correct f v : fneg_strict f = true -> holds f x v -> v < 0.
Proof.
  destruct f as [|[a c] f]; intros S H; [discriminate|]. unfold fneg_strict in S. apply Bool.orb_true_iff in S. destruct S as [S|S].
  - destruct (lead_range_correct a c f v H) as [g [Hg ->]]. pose proof (ineg_strict_correct _ _ S Hg).
    pose proof (meval_pos a x). nra.
  - exact (ineg_strict_correct _ _ S (range_correct _ _ H)).
Qed.

Lemma fpos_correct f v : fpos f = true -> holds f x v -> 0 < v.
Proof.
  destruct f as [|[a c] f]; intros S H; [discriminate|]. unfold fpos in S. apply Bool.orb_true_iff in S. destruct S as [S|S].
  - destruct (lead_range_correct a c f v H) as [g [Hg ->]]. pose proof (ipos_correct _ _ S Hg).
    pose proof (meval_pos a x). nra.
  - exact (ipos_correct _ _ S (range_correct _ _ H)).
Qed.
End Arithmetic.
