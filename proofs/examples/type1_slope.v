(* -log(1 + (2**(-1/2)*t)**2)
   converges: b(t) <= 2.02 * t^-1.5 for all t >= 4 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- ln (1 + (Rpower 2 (- (1 / 2)) * INR t) ^ 2)).

Definition claim : certificate := Certificate Upper 0 (3 # 2) (7 # 10) (At 4).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : windowed R_NormedModule b.
Proof. windows sum. Qed.
