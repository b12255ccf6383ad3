(* weight: sqrt(t + 1) - sqrt(t), from t = 1
   diverges: b(t) >= 0.466 * t^-0.5 for all t >= 4 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := sqrt (INR t + 1) - sqrt (INR t).

Definition claim : certificate := Certificate Lower 0 (1 # 2) (-7633 # 10000) (At 4).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ~ ex_series (fun n => b (1 + n)%nat).
Proof. verdict certificate_holds. Qed.
