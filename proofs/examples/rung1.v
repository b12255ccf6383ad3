(* weight: 1/(t*log(t)**2), from t = 3
   converges: b(t) <= 1 / (t * ln(t)^1.5) for all t >= 4 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := 1 / (INR t * (ln (INR t)) ^ 2).

Definition claim : certificate := Certificate Upper 1 (3 # 2) 0 (At 4).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series (fun n => b (3 + n)%nat).
Proof. verdict certificate_holds. Qed.
