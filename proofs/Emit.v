(* What a file that Farfield writes needs: this library and two tactics.

     certify p far      proves `certifies c b`. b must be a definition `b (t : nat) : R := ...` in which the distance
                        occurs as INR t; p is the precision in bits, and `far` the place from which on all distances are
                        treated at once (those before it are checked one by one).
     verdict c          proves `ex_series b` or `~ ex_series b` from `certifies c b`. *)
From Coq Require Export Reals ZArith QArith String.
From Coquelicot Require Export Coquelicot.
From Farfield Require Export Version Sums Logarithms Ladder Numbers Formula Analysis Certificates.
Open Scope R_scope.

Ltac weight_formula b :=
  let f := constr:(fun t : nat => ltac:(let w := eval red in (b t) in let e := reify (INR t) w in exact e)) in
  eval cbv beta in (f O).

Ltac certify p far :=
  lazymatch goal with
  | |- certifies ?c ?b =>
      let e := weight_formula b in
      refine (check_correct (F.PtoP p) c e far b (fun t => eq_refl) _);
      vm_cast_no_check (eq_refl true)
  end.

Ltac verdict proof :=
  lazymatch goal with
  | |- ex_series _ => refine (certified_convergence _ _ proof _); vm_cast_no_check (eq_refl true)
  | |- ~ ex_series _ => refine (certified_divergence _ _ proof _); vm_cast_no_check (eq_refl true)
  end.
