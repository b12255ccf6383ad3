(* weight: 1/(t*log(t)*log(log(t))*log(log(log(t)))**2), from t = 20
   converges: b(t) <= 1 / (t * ln(t) * ln(ln(t)) * ln(ln(ln(t)))^1.5) for all t >= exp(50) *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := 1 / (INR t * ln (INR t) * ln (ln (INR t)) * ln (ln (ln (INR t))) ^ 2).

Definition claim : certificate := Certificate Upper 3 (3 # 2) 0 (Exp_of (At 50)).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series (fun n => b (20 + n)%nat).
Proof. verdict certificate_holds. Qed.
