(* -0.01*t**0.1
   converges: b(t) <= t^-2 for all t >= exp(1000) *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- (1 / 100) * power (INR t) (1 / 10)).

Definition claim : certificate := Certificate Upper 0 2 0 (Exp_of (At 1000)).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
