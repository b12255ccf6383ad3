(* The tail of 1/(t^2 + c) by powers of 1/t, for t beyond sqrt c: 1/(t^2 + c) = t^-2 - c t^-4 + c^2 t^-6 - ...

   Each power has its tail between the two closed forms of PowerTails.v, and the first power left out bounds the rest. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder Numbers Monomials Formula PowerTails PowerTrf.
Open Scope R_scope.

Lemma even_exponent i : 1 < INR (2 * i + 2).
Proof. apply (lt_INR 1). lia. Qed.

Section Powers.
Variables (c2 : R) (j : nat).
Hypotheses (Hc : 0 < c2) (Hj : (1 <= j)%nat).

Definition square_at (n : nat) : R := INR (j + n) * INR (j + n).
Definition power_term (i n : nat) : R := / square_at n ^ S i.
Definition rest_term (i n : nat) : R := / square_at n ^ i * / (square_at n + c2).

Lemma distance_ge_1 n : 1 <= INR (j + n).
Proof. apply (le_INR 1). lia. Qed.

Lemma square_at_pos n : 0 < square_at n.
Proof. pose proof (distance_ge_1 n). unfold square_at. nra. Qed.

Lemma rest_step i n : rest_term i n = power_term i n - c2 * rest_term (S i) n.
Proof.
  pose proof (square_at_pos n). pose proof (pow_lt _ i (square_at_pos n)). unfold rest_term, power_term. simpl.
  field. repeat split; lra.
Qed.

Lemma rest_bounds i n : 0 <= rest_term i n <= power_term i n.
Proof.
  pose proof (square_at_pos n) as S. assert (P := pow_lt _ i S). unfold rest_term, power_term. simpl.
  assert (PI : 0 < / square_at n ^ i) by now apply Rinv_0_lt_compat.
  assert (C : 0 < / (square_at n + c2)) by (apply Rinv_0_lt_compat; lra). split; [nra|].
  rewrite Rinv_mult, Rmult_comm. apply Rmult_le_compat_r; [lra|]. apply Rinv_le_contravar; lra.
Qed.

Lemma power_term_shifted i n : power_term i n = shifted_power (INR (2 * i + 2)) 1 (j - 1 + n).
Proof.
  unfold power_term, shifted_power, square_at.
  replace (INR (j - 1 + n) + 1) with (INR (j + n)) by (rewrite <- S_INR; f_equal; lia).
  rewrite Rpower_INR by (pose proof (distance_ge_1 n); lra). f_equal.
  replace (INR (j + n) * INR (j + n)) with (INR (j + n) ^ 2) by ring. rewrite <- pow_mult. f_equal. lia.
Qed.

Lemma power_terms_converge i : ex_series (power_term i).
Proof.
  apply (ex_series_ext (fun n => shifted_power (INR (2 * i + 2)) 1 (j - 1 + n)));
    [intros n; symmetry; apply power_term_shifted|].
  apply ex_series_from, shifted_power_converges; [apply even_exponent|lra].
Qed.

Lemma power_terms_sum i :
  tail_lower (INR (2 * i + 2)) (INR (j - 1) + 1 - / 2) <= Series (power_term i)
  <= tail_upper (INR (2 * i + 2)) (INR (j - 1) + 1 - / 2).
Proof.
  rewrite (Series_ext _ _ (power_term_shifted i)). pose proof (pos_INR (j - 1)).
  apply (power_tail (INR (2 * i + 2)) 1 (j - 1)); [apply even_exponent|lra|lra].
Qed.

Lemma rest_terms_converge i : ex_series (rest_term i).
Proof.
  apply (ex_series_le (rest_term i) (power_term i)); [|apply power_terms_converge].
  intros n. destruct (rest_bounds i n). change (norm (rest_term i n)) with (Rabs (rest_term i n)).
  rewrite Rabs_right by lra. lra.
Qed.

Lemma rest_terms_sum i : Series (rest_term i) = Series (power_term i) - c2 * Series (rest_term (S i)).
Proof.
  rewrite <- Series_scal_l, <- Series_minus.
  - apply Series_ext. intros n. apply rest_step.
  - apply power_terms_converge.
  - apply (ex_series_scal c2 (rest_term (S i))), rest_terms_converge.
Qed.

Lemma rest_terms_between i : 0 <= Series (rest_term i) <= Series (power_term i).
Proof.
  split; [|apply Series_le; [apply rest_bounds|apply power_terms_converge]].
  apply (tail_nonneg (rest_term i) 0); [intros n; apply rest_bounds|apply rest_terms_converge].
Qed.
End Powers.

(* ----------------------------------------------------------------------------------------------- as intervals *)
Local Opaque within iZ iadd isub imul iQ ifrom0 ijoin PowerTrf.lo PowerTrf.hi.

Section Enclosure.
Variables (prec : I.F.precision) (c2 : Q) (j : Z).

Definition powers_in (i : nat) : I.type :=
  let p := inject_Z (Z.of_nat (2 * i + 2)) in ijoin (PowerTrf.lo prec p 1 (j - 1)) (PowerTrf.hi prec p 1 (j - 1)).

(* m powers from the i-th on *)
Fixpoint rest_in (m i : nat) : I.type :=
  match m with
  | O => ifrom0 prec (powers_in i)
  | S k => isub prec (powers_in i) (imul prec (iQ prec c2) (rest_in k (S i)))
  end.

Hypothesis Hj : (1 <= j)%Z.

Lemma powers_in_correct i : within (powers_in i) (Series (power_term (Z.to_nat j) i)).
Proof.
  set (p := inject_Z (Z.of_nat (2 * i + 2))).
  assert (P : Q2R p = INR (2 * i + 2)) by apply inject_nat. assert (One : Q2R 1 = 1) by (unfold Q2R; simpl; lra).
  assert (Z1 : (j - 1)%Z = Z.of_nat (Z.to_nat j - 1)) by lia. pose proof (pos_INR (Z.to_nat j - 1)) as N.
  pose proof (even_exponent i) as E. rewrite <- P in E.
  assert (B := power_terms_sum (Z.to_nat j) ltac:(lia) i).
  unfold powers_in. fold p. rewrite Z1.
  apply within_between with (3 := B); rewrite <- P, <- One at 1.
  - apply ijoin_l. apply lo_correct; [exact E|lra].
  - apply ijoin_r. apply hi_correct; [exact E|lra].
Qed.

Lemma rest_in_correct m i : 0 < Q2R c2 -> within (rest_in m i) (Series (rest_term (Q2R c2) (Z.to_nat j) i)).
Proof.
  intros Hc. revert i. induction m as [|m IH]; intros i; cbn [rest_in].
  - apply ifrom0_correct with (Series (power_term (Z.to_nat j) i)); [apply powers_in_correct|].
    left. apply rest_terms_between; [exact Hc|lia].
  - rewrite rest_terms_sum by (assumption || lia). apply isub_correct; [apply powers_in_correct|].
    apply imul_correct; [apply iQ_correct|apply IH].
Qed.
End Enclosure.
