(* Exact receptive fields *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

Definition slope (t : nat) : R := exp (- Rpower 2 (- (1 / 2)) * INR t).
Theorem slope_field : is_trf slope (1 / 100) (Z.to_nat 7).
Proof. field_of_alibi (Rpower 2 (- (1 / 2))) 60%positive. Qed.

Definition typed (t : nat) : R := exp (- INR t / 16).
Theorem typed_field : is_trf typed (1 / 1000000000000) (Z.to_nat 443).
Proof. field_of_alibi (1 / 16) 80%positive. Qed.

Definition printed (t : nat) : R := exp (- 2 * ln (INR t + 1)).
Theorem printed_field : is_trf printed (1 / 1000000000000) (Z.to_nat 607927101854).
Proof. field_of_power 2 1 1 2%Q 1%Q 300%nat 100%positive. Qed.

Definition kerple (t : nat) : R := exp (- 3 * ln (1 + 0.1 * INR t)).
Theorem kerple_field : is_trf kerple 0.01 (Z.to_nat 86).
Proof. field_of_power 3 1 0.1 3%Q 10%Q 40%nat 60%positive. Qed.

Definition kerple_real (t : nat) : R := exp (- (3 / 2) * ln (1 + INR t)).
Theorem kerple_real_field : is_trf kerple_real (1 / 1000) (Z.to_nat 586123).
Proof. field_of_power (3 / 2) 1 1 (3 # 2) 1%Q 30%nat 80%positive. Qed.

Definition trained (t : nat) : R := exp (- ln (1 + (1 / 256 * INR t) ^ 2)).
Theorem trained_field : is_trf trained (1 / 100) (Z.to_nat 16277).
Proof. field_of_type1 (1 / 256) 65536%Q 257%Z 300%nat 60%positive. Qed.

Definition trained_12 (t : nat) : R := exp (- ln (1 + (Rpower 2 (- (7 / 2)) * INR t) ^ 2)).
Theorem trained_12_field : is_trf trained_12 (1 / 100) (Z.to_nat 701).
Proof. field_of_type1 (Rpower 2 (- (7 / 2))) 128%Q 12%Z 100%nat 60%positive. Qed.

Definition windowed_512 (t : nat) : R := if Rlt_dec (INR t) 512 then exp 0 else 0.
Theorem window_field : is_trf windowed_512 (1 / 2) (Z.to_nat 257).
Proof. field_of_window. Qed.

(* any certified formula: type 2 as printed *)
Definition second (t : nat) : R := exp (- (ln (INR t + 1)) ^ 2).
Definition claim : certificate := Certificate Upper 0 4 (9 # 2) (At 4).
Theorem certificate_holds : certifies claim second.
Proof. certify 40%positive. Qed.
Theorem second_field : is_trf second (1 / 100) (Z.to_nat 9).
Proof. field_of certificate_holds 100%nat 40%positive. Qed.
