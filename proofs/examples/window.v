(* where(t < 512, 0, -inf)
   converges: b(t) = 0 for all t >= 1024 *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition b (t : nat) : R := if Rlt_dec (INR t) 512 then exp 0 else 0.

Definition claim : certificate := Certificate Finite_support 0 0 0 (At 1024).

Theorem certificate_holds : certifies claim b.
Proof. certify 40%positive. Qed.

Theorem sum : ex_series b.
Proof. verdict certificate_holds. Qed.
