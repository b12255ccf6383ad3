(* Verdicts for all parameters of a family at once *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "1.1"%string := eq_refl.

(* alibi: -k*t converges if and only if k > 0 *)
Theorem alibi_verdict : forall k, ex_series (fun t => exp (- k * INR t)) <-> 0 < k.
Proof. exact alibi_converges_iff. Qed.

(* kerple-log: -p*log(1 + a*t) converges if and only if p > 1 *)
Theorem kerple_log_verdict : forall p a, 0 < p -> 0 < a -> (ex_series (fun t => exp (- p * ln (1 + a * INR t))) <-> 1 < p).
Proof. intros p a _. exact (kerple_log_converges_iff p a). Qed.

(* kerple-power: -a*t**p converges for every a > 0, p > 0 *)
Theorem kerple_power_verdict : forall a p, 0 < a -> 0 < p -> ex_series (fun t => exp (- a * power (INR t) p)).
Proof. exact kerple_power_converges. Qed.

(* window: where(t < w, 0, -inf) converges for every w *)
Theorem window_verdict : forall w, ex_series (fun t => if Rlt_dec (INR t) w then exp 0 else 0).
Proof. exact window_mask_converges. Qed.

(* sandwich diverges for every r, d, s: any number m of waves *)
Theorem sandwich_verdict : forall r d s m,
  ~ ex_series (fun t => exp ((head (fun j => cos (INR t / Rpower r (2 * INR (S j) / d))) m - INR m) / s)).
Proof. exact sandwich_diverges. Qed.

(* inverse-log: -log(3 + k*t) - log(log(3 + k*t)) diverges for every k > 0 *)
Theorem inverse_log_verdict : forall k, 0 < k -> ~ ex_series (fun t => exp (- ln (3 + k * INR t) - ln (ln (3 + k * INR t)))).
Proof. exact inverse_log_diverges. Qed.
