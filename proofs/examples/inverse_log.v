(* -log(3 + t/16) - log(log(3 + t/16))
   diverges: b(t) >= 9.4e-15 / (t * ln(t)) for all t >= 64 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := exp (- ln (3 + INR t / 16) - ln (ln (3 + INR t / 16))).

Definition claim : certificate := Certificate Lower 1 1 (-32293 # 1000) (At 64).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ~ ex_series b.
Proof. verdict certificate_holds. Qed.

Theorem attention : ~ windowed R_NormedModule b.
Proof. windows sum. Qed.
