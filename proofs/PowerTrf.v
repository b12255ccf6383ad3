(* The exact receptive field of power laws: kerple-log for every rational p > 1 and a > 0, and type 1 as printed.

   1 / (1 + a t)^p is a constant times (t + c)^-p with c = 1/a, and constants do not matter. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder Numbers Monomials Formula Fields PowerTails TailCheck Zoo.
Open Scope R_scope.

Local Opaque within iZ iadd isub imul iinv iexp iln iQ ipow.

Section Power.
Variables (prec : I.F.precision) (p c : Q).

(* x^-q for an interval x > 0 and q = p + d *)
Definition negative_power (x : I.type) (d : Z) : I.type :=
  match Qden p with
  | 1%positive => if (0 <=? Qnum p + d)%Z then iinv prec (ipow prec x (Z.to_nat (Qnum p + d)))
                  else iexp prec (imul prec (iQ prec (- (p + inject_Z d))) (iln prec x))
  | _ => iexp prec (imul prec (iQ prec (- (p + inject_Z d))) (iln prec x))
  end.

Lemma negative_power_correct i x d : 0 < x -> within i x ->
  within (negative_power i d) (Rpower x (- (Q2R p + IZR d))).
Proof.
  intros Hx Hi.
  assert (G : within (iexp prec (imul prec (iQ prec (- (p + inject_Z d))) (iln prec i))) (Rpower x (- (Q2R p + IZR d)))).
  { apply iexp_correct, imul_correct; [|now apply iln_correct].
    replace (- (Q2R p + IZR d)) with (Q2R (- (p + inject_Z d))); [apply iQ_correct|].
    rewrite Q2R_opp, Q2R_plus. unfold Q2R at 2. simpl. field. }
  unfold negative_power. destruct (Qden p) eqn:D; try exact G. destruct (0 <=? Qnum p + d)%Z eqn:S; [|exact G].
  apply Z.leb_le in S. replace (Q2R p + IZR d) with (INR (Z.to_nat (Qnum p + d))).
  - rewrite Rpower_INR by exact Hx. apply iinv_correct. now apply ipow_correct.
  - rewrite INR_IZR_INZ, Z2Nat.id by exact S. rewrite plus_IZR. unfold Q2R. rewrite D. simpl. field.
Qed.

Definition term (t : nat) : I.type := negative_power (iQ prec (inject_Z (Z.of_nat t) + c)) 0.

(* y = j + c - 1/2 *)
Definition midpoint (j : Z) : I.type := iQ prec (inject_Z j + c - (1 # 2)).

Definition lo (j : Z) : I.type :=
  let y := midpoint j in
  isub prec (imul prec (negative_power y (-1)) (iQ prec (/ (p - 1)))) (imul prec (iQ prec (p / 24)) (negative_power y 1)).

Definition hi (j : Z) : I.type :=
  iadd prec (lo j) (imul prec (iQ prec ((7 # 5760) * (p * ((p + 1) * (p + 2))))) (negative_power (midpoint j) 3)).

Definition check_power (eps : Q) (n : Z) (N : nat) : bool :=
  negb (Qle_bool p 1) && negb (Qle_bool c 0) && check_trf prec term lo hi 1 eps n N.

Section Correct.
Hypothesis Hp : 1 < Q2R p.

Lemma inject_nat t : Q2R (inject_Z (Z.of_nat t)) = INR t.
Proof. rewrite INR_IZR_INZ. unfold Q2R. simpl. field. Qed.

Lemma term_correct t : 0 < Q2R c -> within (term t) (shifted_power (Q2R p) (Q2R c) t).
Proof.
  intros Hc. unfold term, shifted_power. pose proof (pos_INR t). replace (- Q2R p) with (- (Q2R p + IZR 0)) by ring.
  apply negative_power_correct; [lra|]. rewrite <- inject_nat, <- Q2R_plus. apply iQ_correct.
Qed.

Lemma midpoint_correct j : within (midpoint (Z.of_nat j)) (INR j + Q2R c - / 2).
Proof.
  unfold midpoint. replace (/ 2) with (Q2R (1 # 2)) by (unfold Q2R; simpl; lra).
  rewrite <- inject_nat, <- Q2R_plus, <- Q2R_minus. apply iQ_correct.
Qed.

Lemma lo_correct j : 0 < INR j + Q2R c - / 2 ->
  within (lo (Z.of_nat j)) (tail_lower (Q2R p) (INR j + Q2R c - / 2)).
Proof.
  set (y := INR j + Q2R c - / 2). intros Py. pose proof (midpoint_correct j) as M. fold y in M. unfold lo, tail_lower.
  apply isub_correct.
  - unfold Rdiv. apply imul_correct.
    + replace (1 - Q2R p) with (- (Q2R p + IZR (-1))) by ring. now apply negative_power_correct.
    + replace (/ (Q2R p - 1)) with (Q2R (/ (p - 1))); [apply iQ_correct|].
      rewrite Q2R_inv, Q2R_minus; [f_equal; unfold Q2R at 2; simpl; lra|].
      intros E. apply Qeq_eqR in E. rewrite Q2R_minus in E. unfold Q2R at 2 3 in E. simpl in E. lra.
  - apply imul_correct; [|now apply (negative_power_correct _ y 1)].
    replace (Q2R p / 24) with (Q2R (p / 24)); [apply iQ_correct|].
    unfold Qdiv. rewrite Q2R_mult, Q2R_inv by discriminate. unfold Q2R at 2. simpl. field.
Qed.

Lemma hi_correct j : 0 < INR j + Q2R c - / 2 ->
  within (hi (Z.of_nat j)) (tail_upper (Q2R p) (INR j + Q2R c - / 2)).
Proof.
  set (y := INR j + Q2R c - / 2). intros Py. pose proof (midpoint_correct j) as M. fold y in M. unfold hi, tail_upper.
  apply iadd_correct; [now apply lo_correct|].
  replace (7 / 5760 * (Q2R p * ((Q2R p + 1) * ((Q2R p + 2) * Rpower y (- (Q2R p + 3))))))
    with (Q2R ((7 # 5760) * (p * ((p + 1) * (p + 2)))) * Rpower y (- (Q2R p + IZR 3))).
  - apply imul_correct; [apply iQ_correct|]. now apply negative_power_correct.
  - rewrite !Q2R_mult, !Q2R_plus. unfold Q2R at 1 4 6. simpl. field.
Qed.
End Correct.

Theorem check_power_correct eps n N : check_power eps n N = true ->
  is_trf (shifted_power (Q2R p) (Q2R c)) (Q2R eps) (Z.to_nat n).
Proof.
  unfold check_power. intros H. apply Bool.andb_true_iff in H. destruct H as [H1 H].
  apply Bool.andb_true_iff in H1. destruct H1 as [Hp Hc].
  assert (Pp : 1 < Q2R p).
  { apply Bool.negb_true_iff in Hp. destruct (Qlt_le_dec 1 p) as [h|h].
    - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
    - apply Qle_bool_iff in h. congruence. }
  assert (Pc : 0 < Q2R c).
  { apply Bool.negb_true_iff in Hc. destruct (Qlt_le_dec 0 c) as [h|h].
    - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
    - apply Qle_bool_iff in h. congruence. }
  apply (check_trf_correct prec term lo hi 1 _ (fun t => Rlt_le _ _ (Rpower_pos _ _))
           (shifted_power_converges _ _ Pp Pc) (fun t => term_correct t Pc)) with N; [| |exact H].
  - intros j Hj. assert (1 <= INR j) by (apply INR_ge_1; lia).
    exists (tail_lower (Q2R p) (INR j + Q2R c - / 2)). split; [apply lo_correct; lra|].
    apply (power_tail (Q2R p) (Q2R c) j Pp Pc). lra.
  - intros j Hj. assert (1 <= INR j) by (apply INR_ge_1; lia).
    exists (tail_upper (Q2R p) (INR j + Q2R c - / 2)). split; [apply hi_correct; lra|].
    apply (power_tail (Q2R p) (Q2R c) j Pp Pc). lra.
Qed.

(* the sum itself *)
Definition total_range (N : nat) : I.type := iadd prec (ihead prec term N) (ijoin (lo (Z.of_nat N)) (hi (Z.of_nat N))).

Lemma total_range_correct N : 1 < Q2R p -> 0 < Q2R c -> (1 <= N)%nat ->
  within (total_range N) (total (shifted_power (Q2R p) (Q2R c))).
Proof.
  intros Pp Pc HN. pose proof (INR_ge_1 N HN) as H1. assert (Py : 0 < INR N + Q2R c - / 2) by lra.
  rewrite (head_tail _ N (shifted_power_converges _ _ Pp Pc)). unfold total_range. apply iadd_correct.
  - apply (ihead_correct prec term _ (fun t => term_correct t Pc)).
  - apply within_between with (tail_lower (Q2R p) (INR N + Q2R c - / 2)) (tail_upper (Q2R p) (INR N + Q2R c - / 2)).
    + apply ijoin_l. now apply lo_correct.
    + apply ijoin_r. now apply hi_correct.
    + now apply power_tail.
Qed.
End Power.

(* exp(-p ln(c + d t)) for any c, d > 0: Kerple, type 1 as printed, and what people type *)
Definition affine_power (p c d : R) (t : nat) : R := exp (- p * ln (c + d * INR t)).

Theorem affine_power_trf prec (p q eps : Q) (n : Z) (N : nat) (p' c d eps' : R) :
  Q2R p = p' -> 0 < d -> c = Q2R q * d -> Q2R eps = eps' ->
  check_power prec p q eps n N = true -> is_trf (affine_power p' c d) eps' (Z.to_nat n).
Proof.
  intros <- Hd -> <- H. pose proof (check_power_correct prec p q eps n N H) as T.
  unfold check_power in H. apply Bool.andb_true_iff in H. destruct H as [H _].
  apply Bool.andb_true_iff in H. destruct H as [_ Hq].
  assert (Pq : 0 < Q2R q).
  { apply Bool.negb_true_iff in Hq. destruct (Qlt_le_dec 0 q) as [h|h].
    - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
    - apply Qle_bool_iff in h. congruence. }
  apply (trf_scale (Rpower d (- Q2R p)) _ _ _ (Rpower_pos _ _)) in T.
  apply (trf_ext _ (affine_power (Q2R p) (Q2R q * d) d)) in T; [exact T|].
  intros t. unfold shifted_power, affine_power, Rpower. rewrite <- exp_plus. f_equal. pose proof (pos_INR t).
  replace (Q2R q * d + d * INR t) with (d * (INR t + Q2R q)) by ring. rewrite ln_mult by lra. ring.
Qed.

(* kerple-log: p and c = 1/a rational *)
Theorem kerple_log_trf prec (p c eps : Q) (n : Z) (N : nat) (p' a eps' : R) :
  Q2R p = p' -> 0 < a -> 1 = Q2R c * a -> Q2R eps = eps' ->
  check_power prec p c eps n N = true -> is_trf (kerple_log p' a) eps' (Z.to_nat n).
Proof. intros Hp Ha Hc He H. exact (affine_power_trf prec p c eps n N p' 1 a eps' Hp Ha Hc He H). Qed.

(* type 1 as printed *)
Theorem type1_paper_trf prec (eps : Q) (n : Z) (N : nat) (eps' : R) :
  Q2R eps = eps' -> check_power prec 2 1 eps n N = true -> is_trf type1_paper eps' (Z.to_nat n).
Proof.
  intros He H. apply (trf_ext (kerple_log 2 1)).
  - intros t. unfold kerple_log, type1_paper. f_equal. f_equal. f_equal. ring.
  - apply (kerple_log_trf prec 2 1 eps n N); try assumption; unfold Q2R; simpl; lra.
Qed.

(* 1/(c + d t)^m with a whole exponent *)
Lemma affine_power_nat m c d t : 0 < c + d * INR t -> affine_power (INR m) c d t = / (c + d * INR t) ^ m.
Proof. intros H. unfold affine_power. rewrite <- Rpower_INR by exact H. reflexivity. Qed.
