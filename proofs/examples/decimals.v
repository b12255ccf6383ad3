(* -1.01*log(1 + t)
   converges: b(t) <= 1.34 * t^-1.005 for all t >= 4 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- 1.01 * ln (1 + INR t)).

Definition claim : certificate := Certificate Upper 0 (201 # 200) (2906 # 10000) (At 4).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
