(* -log(t + 3) - log(log(t + 3)) - 1.01*log(log(log(t + 3) + 2))
   converges: b(t) <= 1.65 / (t * ln(t) * ln(ln(t))^1.005) for all t >= 64 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- ln (INR t + 3) - ln (ln (INR t + 3)) - 1.01 * ln (ln (ln (INR t + 3) + 2))).

Definition claim : certificate := Certificate Upper 2 (201 # 200) (4949 # 10000) (At 64).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
