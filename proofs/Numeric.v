(* Inequalities between numbers, decided by interval arithmetic: `numeric p` with a precision of p bits. *)
From Coq Require Import Reals ZArith QArith Qreals Lra.
From Farfield Require Import Numbers Formula.
Open Scope R_scope.

Lemma numeric_lt prec a b x : ineg_strict (enclose_at prec I.nai (Sub a b)) = true -> eval a x < eval b x.
Proof.
  intros H. pose proof (enclose_at_correct prec I.nai x (Sub a b) (within_nai x)) as W.
  pose proof (ineg_strict_correct _ _ H W) as G. simpl in G. lra.
Qed.

Lemma numeric_le prec a b x : inonpos (enclose_at prec I.nai (Sub a b)) = true -> eval a x <= eval b x.
Proof.
  intros H. pose proof (enclose_at_correct prec I.nai x (Sub a b) (within_nai x)) as W.
  pose proof (inonpos_correct _ _ H W) as G. simpl in G. lra.
Qed.

Ltac numeric p :=
  lazymatch goal with
  | |- ?a < ?b => let fa := reify tt a in let fb := reify tt b in
      refine (numeric_lt (F.PtoP p) fa fb 0 _); vm_cast_no_check (eq_refl true)
  | |- ?a <= ?b => let fa := reify tt a in let fb := reify tt b in
      refine (numeric_le (F.PtoP p) fa fb 0 _); vm_cast_no_check (eq_refl true)
  end.

(* a rational number of the checker is the real number that was written *)
Ltac rational := unfold Q2R; simpl; lra.
