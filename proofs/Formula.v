(* Formulas as data: their syntax, their meaning as functions of the distance, and their enclosure at one distance.

   `reify` turns a Coq term in a variable into a formula, so that statements can be written in plain Coq. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Farfield Require Import Logarithms Numbers.
Open Scope R_scope.

Inductive formula : Type :=
| Dist                                  (* the distance t *)
| Int (z : Z)
| Rat (q : Q)                           (* a decimal number *)
| Pi
| Add (a b : formula)
| Sub (a b : formula)
| Mul (a b : formula)
| Div (a b : formula)
| Neg (a : formula)
| Inv (a : formula)
| Exp (a : formula)
| Log (a : formula)
| Sqrt (a : formula)
| Pow (a : formula) (n : nat)           (* a whole exponent *)
| Real_pow (a b : formula)              (* Rpower: exp (b * ln a) *)
| Power (a b : formula)                 (* the same, but 0 ** b = 0 *)
| Cos (a : formula)
| Sin (a : formula)
| Abs (a : formula)
| Floor (a : formula)
| Min (a b : formula)
| Max (a b : formula)
| If_lt (a b c d : formula)             (* where(a < b, c, d) *)
| If_le (a b c d : formula).

Definition floor (x : R) : R := IZR (Int_part x).

Fixpoint eval (e : formula) (x : R) : R :=
  match e with
  | Dist => x
  | Int z => IZR z
  | Rat q => Q2R q
  | Pi => PI
  | Add a b => eval a x + eval b x
  | Sub a b => eval a x - eval b x
  | Mul a b => eval a x * eval b x
  | Div a b => eval a x / eval b x
  | Neg a => - eval a x
  | Inv a => / eval a x
  | Exp a => exp (eval a x)
  | Log a => ln (eval a x)
  | Sqrt a => sqrt (eval a x)
  | Pow a n => eval a x ^ n
  | Real_pow a b => Rpower (eval a x) (eval b x)
  | Power a b => power (eval a x) (eval b x)
  | Cos a => cos (eval a x)
  | Sin a => sin (eval a x)
  | Abs a => Rabs (eval a x)
  | Floor a => floor (eval a x)
  | Min a b => Rmin (eval a x) (eval b x)
  | Max a b => Rmax (eval a x) (eval b x)
  | If_lt a b c d => if Rlt_dec (eval a x) (eval b x) then eval c x else eval d x
  | If_le a b c d => if Rle_dec (eval a x) (eval b x) then eval c x else eval d x
  end.

(* ---------------------------------------------------------------------------------------- a Coq term as a formula *)
Ltac reify x e :=
  lazymatch constr:((e, x)) with
  | (?a, ?a) => constr:(Dist)
  | _ =>
  lazymatch e with
  | IZR ?z => constr:(Int z)
  | Q2R ?q => constr:(Rat q)
  | PI => constr:(Pi)
  | ?a + ?b => let a := reify x a in let b := reify x b in constr:(Add a b)
  | ?a - ?b => let a := reify x a in let b := reify x b in constr:(Sub a b)
  | ?a * ?b => let a := reify x a in let b := reify x b in constr:(Mul a b)
  | ?a / ?b => let a := reify x a in let b := reify x b in constr:(Div a b)
  | - ?a => let a := reify x a in constr:(Neg a)
  | / ?a => let a := reify x a in constr:(Inv a)
  | exp ?a => let a := reify x a in constr:(Exp a)
  | ln ?a => let a := reify x a in constr:(Log a)
  | sqrt ?a => let a := reify x a in constr:(Sqrt a)
  | ?a ^ ?n => let a := reify x a in constr:(Pow a n)
  | Rpower ?a ?b => let a := reify x a in let b := reify x b in constr:(Real_pow a b)
  | power ?a ?b => let a := reify x a in let b := reify x b in constr:(Power a b)
  | cos ?a => let a := reify x a in constr:(Cos a)
  | sin ?a => let a := reify x a in constr:(Sin a)
  | Rabs ?a => let a := reify x a in constr:(Abs a)
  | floor ?a => let a := reify x a in constr:(Floor a)
  | Rmin ?a ?b => let a := reify x a in let b := reify x b in constr:(Min a b)
  | Rmax ?a ?b => let a := reify x a in let b := reify x b in constr:(Max a b)
  | (if Rlt_dec ?a ?b then ?c else ?d) =>
      let a := reify x a in let b := reify x b in let c := reify x c in let d := reify x d in constr:(If_lt a b c d)
  | (if Rle_dec ?a ?b then ?c else ?d) =>
      let a := reify x a in let b := reify x b in let c := reify x c in let d := reify x d in constr:(If_le a b c d)
  | _ => fail 100 "this term is outside the language of formulas:" e
  end
  end.

(* -------------------------------------------------------------------------------------- the value at one distance *)
Section At.
Variable prec : I.F.precision.

Fixpoint ipow (a : I.type) (n : nat) : I.type :=
  match n with O => iZ prec 1 | S m => imul prec a (ipow a m) end.

Lemma ipow_correct a x n : within a x -> within (ipow a n) (x ^ n).
Proof.
  intros H. induction n as [|n IH]; simpl; [apply iZ_correct|]. now apply imul_correct.
Qed.

Definition imin (a b : I.type) : I.type :=
  if inonpos (isub prec a b) then a else if inonneg (isub prec a b) then b else ijoin a b.
Definition imax (a b : I.type) : I.type :=
  if inonpos (isub prec a b) then b else if inonneg (isub prec a b) then a else ijoin a b.

Lemma imin_correct a b x y : within a x -> within b y -> within (imin a b) (Rmin x y).
Proof.
  intros Ha Hb. unfold imin. pose proof (isub_correct prec a b x y Ha Hb) as D.
  destruct (inonpos (isub prec a b)) eqn:S1.
  - pose proof (inonpos_correct _ _ S1 D). rewrite Rmin_left by lra. exact Ha.
  - destruct (inonneg (isub prec a b)) eqn:S2.
    + pose proof (inonneg_correct _ _ S2 D). rewrite Rmin_right by lra. exact Hb.
    + unfold Rmin. destruct (Rle_dec x y); [now apply ijoin_l|now apply ijoin_r].
Qed.

Lemma imax_correct a b x y : within a x -> within b y -> within (imax a b) (Rmax x y).
Proof.
  intros Ha Hb. unfold imax. pose proof (isub_correct prec a b x y Ha Hb) as D.
  destruct (inonpos (isub prec a b)) eqn:S1.
  - pose proof (inonpos_correct _ _ S1 D). rewrite Rmax_right by lra. exact Hb.
  - destruct (inonneg (isub prec a b)) eqn:S2.
    + pose proof (inonneg_correct _ _ S2 D). rewrite Rmax_left by lra. exact Ha.
    + unfold Rmax. destruct (Rle_dec x y); [now apply ijoin_r|now apply ijoin_l].
Qed.

Definition ipower (a b : I.type) : I.type :=
  if ipos a then iexp prec (imul prec b (iln prec a))
  else if izero a then if ipos b then iZ prec 0 else if izero b then iZ prec 1 else I.nai else I.nai.

Lemma ipower_correct a b x y : within a x -> within b y -> within (ipower a b) (power x y).
Proof.
  intros Ha Hb. unfold ipower. destruct (ipos a) eqn:S1.
  - rewrite power_pos by (now apply (ipos_correct a)). apply iexp_correct, imul_correct; [exact Hb|now apply iln_correct].
  - destruct (izero a) eqn:S2; [|apply within_nai].
    rewrite (izero_correct a x S2 Ha). destruct (ipos b) eqn:S3.
    + pose proof (ipos_correct b y S3 Hb). rewrite power_0 by lra. apply iZ_correct.
    + destruct (izero b) eqn:S4; [|apply within_nai]. rewrite (izero_correct b y S4 Hb), power_0_0. apply iZ_correct.
Qed.

Fixpoint enclose_at (x : I.type) (e : formula) : I.type :=
  match e with
  | Dist => x
  | Int z => iZ prec z
  | Rat q => iQ prec q
  | Pi => ipi prec
  | Add a b => iadd prec (enclose_at x a) (enclose_at x b)
  | Sub a b => isub prec (enclose_at x a) (enclose_at x b)
  | Mul a b => imul prec (enclose_at x a) (enclose_at x b)
  | Div a b => imul prec (enclose_at x a) (iinv prec (enclose_at x b))
  | Neg a => ineg (enclose_at x a)
  | Inv a => iinv prec (enclose_at x a)
  | Exp a => iexp prec (enclose_at x a)
  | Log a => iln prec (enclose_at x a)
  | Sqrt a => isqrt prec (enclose_at x a)
  | Pow a n => ipow (enclose_at x a) n
  | Real_pow a b => iexp prec (imul prec (enclose_at x b) (iln prec (enclose_at x a)))
  | Power a b => ipower (enclose_at x a) (enclose_at x b)
  | Cos a => icos prec (enclose_at x a)
  | Sin a => isin prec (enclose_at x a)
  | Abs a => iabs (enclose_at x a)
  | Floor a => ifloor (enclose_at x a)
  | Min a b => imin (enclose_at x a) (enclose_at x b)
  | Max a b => imax (enclose_at x a) (enclose_at x b)
  | If_lt a b c d =>
      let s := isub prec (enclose_at x a) (enclose_at x b) in
      if ineg_strict s then enclose_at x c else if inonneg s then enclose_at x d else I.nai
  | If_le a b c d =>
      let s := isub prec (enclose_at x a) (enclose_at x b) in
      if inonpos s then enclose_at x c else if ipos s then enclose_at x d else I.nai
  end.

Lemma enclose_at_correct i x e : within i x -> within (enclose_at i e) (eval e x).
Proof.
  intros Hx. induction e; cbn [enclose_at eval].
  - exact Hx.
  - apply iZ_correct.
  - apply iQ_correct.
  - apply ipi_correct.
  - now apply iadd_correct.
  - now apply isub_correct.
  - now apply imul_correct.
  - apply imul_correct; [assumption|now apply iinv_correct].
  - now apply ineg_correct.
  - now apply iinv_correct.
  - now apply iexp_correct.
  - now apply iln_correct.
  - now apply isqrt_correct.
  - now apply ipow_correct.
  - apply iexp_correct, imul_correct; [assumption|now apply iln_correct].
  - now apply ipower_correct.
  - now apply icos_correct.
  - now apply isin_correct.
  - now apply iabs_correct.
  - now apply ifloor_correct.
  - now apply imin_correct.
  - now apply imax_correct.
  - pose proof (isub_correct prec _ _ _ _ IHe1 IHe2) as D.
    destruct (ineg_strict _) eqn:S1; [pose proof (ineg_strict_correct _ _ S1 D)|].
    + destruct (Rlt_dec _ _); [assumption|exfalso; lra].
    + destruct (inonneg _) eqn:S2; [pose proof (inonneg_correct _ _ S2 D)|apply within_nai].
      destruct (Rlt_dec _ _); [exfalso; lra|assumption].
  - pose proof (isub_correct prec _ _ _ _ IHe1 IHe2) as D.
    destruct (inonpos _) eqn:S1; [pose proof (inonpos_correct _ _ S1 D)|].
    + destruct (Rle_dec _ _); [assumption|exfalso; lra].
    + destruct (ipos _) eqn:S2; [pose proof (ipos_correct _ _ S2 D)|apply within_nai].
      destruct (Rle_dec _ _); [exfalso; lra|assumption].
Qed.
End At.
