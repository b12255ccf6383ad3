(* weight: (1 - log(t)/t)**t, from t = 3
   diverges: b(t) >= 0.761 * t^-1 for all t >= 16 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := Rpower (1 - ln (INR t) / INR t) (INR t).

Definition claim : certificate := Certificate Lower 0 1 (-2722 # 10000) (At 16).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ~ ex_series (fun n => b (3 + n)%nat).
Proof. verdict certificate_holds. Qed.
