(* -t/1000000 + sum(cos(t/10000**(2*j/8)), j, 1, 4) - 4
   converges: b(t) <= t^-2 for all t >= 1073741824 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- INR t / 1000000 + (cos (INR t / Rpower 10000 (2 * 1 / 8)) + cos (INR t / Rpower 10000 (2 * 2 / 8)) + cos (INR t / Rpower 10000 (2 * 3 / 8)) + cos (INR t / Rpower 10000 (2 * 4 / 8))) - 4).

Definition claim : certificate := Certificate Upper 0 2 0 (At 1073741824).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
