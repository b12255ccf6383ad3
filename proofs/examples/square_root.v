(* -sqrt(t/16) + cos(t)/2
   converges: b(t) <= 2.72 * t^-2 for all t >= 8192 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- sqrt (INR t / 16) + cos (INR t) / 2).

Definition claim : certificate := Certificate Upper 0 2 1 (At 8192).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
