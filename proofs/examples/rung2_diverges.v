(* weight: 1/(t*log(t)*log(log(t))), from t = 20
   diverges: b(t) >= 1 / (t * ln(t) * ln(ln(t))) for all t >= 16 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := 1 / (INR t * ln (INR t) * ln (ln (INR t))).

Definition claim : certificate := Certificate Lower 2 1 0 (At 16).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ~ ex_series (fun n => b (20 + n)%nat).
Proof. verdict certificate_holds. Qed.
