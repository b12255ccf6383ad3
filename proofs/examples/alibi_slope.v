(* -2**(-7/2)*t
   converges: b(t) <= t^-2 for all t >= 1024 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- Rpower 2 (- (7 / 2)) * INR t).

Definition claim : certificate := Certificate Upper 0 2 0 (At 1024).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
