(* weight: exp(-2**(-1/2)*t) + exp(-t/8)*(t + 1)
   converges: b(t) <= 7.39 * t^-2 for all t >= 256 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- Rpower 2 (- (1 / 2)) * INR t) + exp (- INR t / 8) * (INR t + 1).

Definition claim : certificate := Certificate Upper 0 2 2 (At 256).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.
