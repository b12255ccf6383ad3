(* -2*log(t + 1)
   converges: b(t) <= 1.78 * t^-1.5 for all t >= 4 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- 2 * ln (INR t + 1)).

Definition claim : certificate := Certificate Upper 0 (3 # 2) (5754 # 10000) (At 4).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
