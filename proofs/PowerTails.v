(* Bounds for the tail of a power law, good enough to tell neighbouring integers apart.

   For p > 1 and y > 0 let
       U(y) = y^(1-p)/(p-1),   L(y) = U(y) - p/24 y^(-p-1),   V(y) = L(y) + 7 p (p+1) (p+2)/5760 y^(-p-3).
   Then L(y) - L(y+1) <= (y + 1/2)^-p <= V(y) - V(y+1), so the tail of (t + c)^-p from j on lies between L and V at
   y = j + c - 1/2: the midpoint rule of Euler and Maclaurin with its first two corrections, proved by telescoping. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder.
Open Scope R_scope.

(* a function that is 0 at 0 and whose derivative is not negative is not negative *)
Lemma rises_from_0 (f f1 : R -> R) h : 0 <= h -> f 0 = 0 ->
  (forall z, 0 <= z <= h -> is_derive f z (f1 z)) -> (forall z, 0 <= z <= h -> 0 <= f1 z) -> 0 <= f h.
Proof.
  intros Hh F0 D P. destruct (Req_dec h 0) as [->|N]; [lra|].
  destruct (MVT_cor2 f f1 0 h ltac:(lra)) as [z [E B]].
  - intros z Hz. apply is_derive_Reals. now apply D.
  - specialize (P z ltac:(lra)). nra.
Qed.

Section Midpoint.
Variable z : R.

(* even and odd parts of (z - h)^-q + (z + h)^-q *)
Definition even (q h : R) : R := Rpower (z - h) (- q) + Rpower (z + h) (- q).
Definition odd (q h : R) : R := Rpower (z - h) (- q) - Rpower (z + h) (- q).

Lemma derive_even q h : 0 < z - h -> 0 < z + h -> is_derive (even q) h (q * odd (q + 1) h).
Proof.
  intros H1 H2. unfold even, odd. replace (- (q + 1)) with (- q + - (1)) by ring.
  rewrite !Rpower_plus, !(Rpower_Ropp _ 1), !Rpower_1 by assumption.
  unfold Rpower, Rminus in *. auto_derive; [split; [lra|split; [lra|exact Logic.I]]|]. field. lra.
Qed.

Lemma derive_odd q h : 0 < z - h -> 0 < z + h -> is_derive (odd q) h (q * even (q + 1) h).
Proof.
  intros H1 H2. unfold even, odd. replace (- (q + 1)) with (- q + - (1)) by ring.
  rewrite !Rpower_plus, !(Rpower_Ropp _ 1), !Rpower_1 by assumption.
  unfold Rpower, Rminus in *. auto_derive; [split; [lra|split; [lra|exact Logic.I]]|]. field. lra.
Qed.

Lemma even_pos q h : 0 < even q h.
Proof. unfold even. pose proof (Rpower_pos (z - h) (- q)). pose proof (Rpower_pos (z + h) (- q)). lra. Qed.

Lemma odd_nonneg q h : 0 <= q -> 0 <= h -> 0 < z - h -> 0 <= odd q h.
Proof.
  intros Hq Hh Hz. unfold odd. pose proof (Rpower_ge_base (z - h) (z + h) (- q) Hz ltac:(lra) ltac:(lra)). lra.
Qed.

Lemma odd_0 q : odd q 0 = 0.
Proof. unfold odd. rewrite Rminus_0_r, Rplus_0_r. ring. Qed.

Lemma even_0 q : even q 0 = 2 * Rpower z (- q).
Proof. unfold even. rewrite Rminus_0_r, Rplus_0_r. ring. Qed.

(* odd q h <= h * q * even (q+1) h, because even rises *)
Lemma odd_le q h : 0 <= q -> 0 <= h -> 0 < z - h -> odd q h <= h * (q * even (q + 1) h).
Proof.
  intros Hq Hh Hz.
  assert (G : 0 <= h * (q * even (q + 1) h) - odd q h); [|lra].
  apply (rises_from_0 (fun y => y * (q * even (q + 1) y) - odd q y) (fun y => y * (q * ((q + 1) * odd (q + 2) y)))).
  - exact Hh.
  - rewrite odd_0. ring.
  - intros y Hy. pose proof (derive_even (q + 1) y ltac:(lra) ltac:(lra)) as D1.
    pose proof (derive_odd q y ltac:(lra) ltac:(lra)) as D2.
    replace (q + 1 + 1) with (q + 2) in D1 by ring.
    replace (y * (q * ((q + 1) * odd (q + 2) y)))
      with ((1 * (q * even (q + 1) y) + y * (q * ((q + 1) * odd (q + 2) y))) - q * even (q + 1) y) by ring.
    apply (is_derive_minus (fun y => y * (q * even (q + 1) y)) (odd q)); [|exact D2].
    apply (is_derive_mult (fun y => y) (fun y => q * even (q + 1) y) y 1 (q * ((q + 1) * odd (q + 2) y)));
      [apply (is_derive_id y)| |intros; apply Rmult_comm].
    apply (is_derive_scal (even (q + 1)) y q). exact D1.
  - intros y Hy. pose proof (odd_nonneg (q + 2) y ltac:(lra) ltac:(lra) ltac:(lra)).
    repeat apply Rmult_le_pos; lra.
Qed.

Variable p : R.
Hypothesis Hp : 1 < p.

(* the integral of x^-p over [z - h, z + h] *)
Definition integral (h : R) : R := odd (p - 1) h / (p - 1).

Lemma derive_integral h : 0 < z - h -> 0 < z + h -> is_derive integral h (even p h).
Proof.
  intros H1 H2. pose proof (derive_odd (p - 1) h H1 H2) as D. replace (p - 1 + 1) with p in D by ring.
  unfold integral. replace (even p h) with (/ (p - 1) * ((p - 1) * even p h)) by (field; lra).
  apply is_derive_ext with (fun h => / (p - 1) * odd (p - 1) h); [intros; unfold Rdiv; apply Rmult_comm|].
  apply (is_derive_scal (odd (p - 1)) h (/ (p - 1))). exact D.
Qed.

(* from below: integral - h^2/6 * S' <= 2 h z^-p, S = even p *)
Lemma midpoint_lower h : 0 <= h -> 0 < z - h ->
  integral h - h * h / 6 * (p * odd (p + 1) h) <= 2 * h * Rpower z (- p).
Proof.
  intros Hh Hz.
  assert (D1 : forall q y, 0 <= y <= h -> is_derive (even q) y (q * odd (q + 1) y)) by (intros; apply derive_even; lra).
  assert (D2 : forall q y, 0 <= y <= h -> is_derive (odd q) y (q * even (q + 1) y)) by (intros; apply derive_odd; lra).
  set (k := fun y => 2 * y * Rpower z (- p) - integral y + y * y / 6 * (p * odd (p + 1) y)).
  set (k1 := fun y => 2 * Rpower z (- p) - even p y + y / 3 * (p * odd (p + 1) y)
                      + y * y / 6 * (p * ((p + 1) * even (p + 2) y))).
  set (k2 := fun y => - (2 / 3) * (p * odd (p + 1) y) + 2 / 3 * y * (p * ((p + 1) * even (p + 2) y))
                      + y * y / 6 * (p * ((p + 1) * ((p + 2) * odd (p + 3) y)))).
  assert (E1 : forall y, 0 <= y <= h -> is_derive (fun y => odd (p + 1) y) y ((p + 1) * even (p + 2) y)).
  { intros y Hy. replace (p + 2) with (p + 1 + 1) by ring. now apply D2. }
  assert (E2 : forall y, 0 <= y <= h -> is_derive (fun y => even (p + 2) y) y ((p + 2) * odd (p + 3) y)).
  { intros y Hy. replace (p + 3) with (p + 2 + 1) by ring. now apply D1. }
  assert (K1 : forall y, 0 <= y <= h -> is_derive k y (k1 y)).
  { intros y Hy. pose proof (derive_integral y ltac:(lra) ltac:(lra)) as DI. specialize (E1 y Hy).
    unfold k. auto_derive.
    - repeat split; [exists (even p y); exact DI|exists ((p + 1) * even (p + 2) y); exact E1].
    - rewrite (is_derive_unique (fun x : R => integral x) _ _ DI), (is_derive_unique (fun x : R => odd (p + 1) x) _ _ E1). unfold k1. field. }
  assert (K2 : forall y, 0 <= y <= h -> is_derive k1 y (k2 y)).
  { intros y Hy. specialize (E1 y Hy). specialize (E2 y Hy). pose proof (D1 p y Hy) as E0. unfold k1. auto_derive.
    - repeat split; [exists (p * odd (p + 1) y); exact E0|exists ((p + 1) * even (p + 2) y); exact E1
                    |exists ((p + 2) * odd (p + 3) y); exact E2].
    - rewrite (is_derive_unique (fun x : R => even p x) _ _ E0), (is_derive_unique (fun x : R => odd (p + 1) x) _ _ E1),
        (is_derive_unique (fun x : R => even (p + 2) x) _ _ E2). unfold k2. field. }
  assert (P2 : forall y, 0 <= y <= h -> 0 <= k2 y).
  { intros y Hy. unfold k2. pose proof (odd_le (p + 1) y ltac:(lra) ltac:(lra) ltac:(lra)) as L.
    replace (p + 1 + 1) with (p + 2) in L by ring.
    pose proof (odd_nonneg (p + 3) y ltac:(lra) ltac:(lra) ltac:(lra)) as O.
    assert (A : 0 <= y * y / 6 * (p * ((p + 1) * ((p + 2) * odd (p + 3) y)))).
    { apply Rmult_le_pos; [apply Rmult_le_pos; [nra|lra]|]. repeat apply Rmult_le_pos; lra. }
    assert (B : p * odd (p + 1) y <= p * (y * ((p + 1) * even (p + 2) y))) by (apply Rmult_le_compat_l; lra).
    lra. }
  assert (P1 : forall y, 0 <= y <= h -> 0 <= k1 y).
  { intros y Hy. apply (rises_from_0 k1 k2 y ltac:(lra)).
    - unfold k1. rewrite odd_0, even_0. field.
    - intros w Hw. apply K2. lra.
    - intros w Hw. apply P2. lra. }
  assert (P0 : 0 <= k h).
  { apply (rises_from_0 k k1 h Hh).
    - unfold k, integral. rewrite !odd_0. field. lra.
    - exact K1.
    - exact P1. }
  unfold k in P0. lra.
Qed.

(* from above: integral - h^2/6 * S' + 7/360 h^4 * S''' >= 2 h z^-p *)
Lemma midpoint_upper h : 0 <= h -> 0 < z - h ->
  2 * h * Rpower z (- p) <= integral h - h * h / 6 * (p * odd (p + 1) h)
                            + 7 / 360 * (h * h * h * h) * (p * ((p + 1) * ((p + 2) * odd (p + 3) h))).
Proof.
  intros Hh Hz.
  assert (D1 : forall q y, 0 <= y <= h -> is_derive (even q) y (q * odd (q + 1) y)) by (intros; apply derive_even; lra).
  assert (D2 : forall q y, 0 <= y <= h -> is_derive (odd q) y (q * even (q + 1) y)) by (intros; apply derive_odd; lra).
  set (s3 := fun y => p * ((p + 1) * ((p + 2) * odd (p + 3) y))).
  set (s4 := fun y => p * ((p + 1) * ((p + 2) * ((p + 3) * even (p + 4) y)))).
  set (s5 := fun y => p * ((p + 1) * ((p + 2) * ((p + 3) * ((p + 4) * odd (p + 5) y))))).
  set (s6 := fun y => p * ((p + 1) * ((p + 2) * ((p + 3) * ((p + 4) * ((p + 5) * even (p + 6) y)))))).
  set (s1 := fun y => p * odd (p + 1) y). set (s2 := fun y => p * ((p + 1) * even (p + 2) y)).
  assert (E0 : forall y, 0 <= y <= h -> is_derive (fun y => even p y) y (s1 y)) by (intros; now apply D1).
  assert (E1 : forall y, 0 <= y <= h -> is_derive s1 y (s2 y)).
  { intros y Hy. apply (is_derive_scal (odd (p + 1)) y p). replace (p + 2) with (p + 1 + 1) by ring. now apply D2. }
  assert (E2 : forall y, 0 <= y <= h -> is_derive s2 y (s3 y)).
  { intros y Hy. do 2 (apply is_derive_scal). replace (p + 3) with (p + 2 + 1) by ring. now apply D1. }
  assert (E3 : forall y, 0 <= y <= h -> is_derive s3 y (s4 y)).
  { intros y Hy. do 3 (apply is_derive_scal). replace (p + 4) with (p + 3 + 1) by ring. now apply D2. }
  assert (E4 : forall y, 0 <= y <= h -> is_derive s4 y (s5 y)).
  { intros y Hy. do 4 (apply is_derive_scal). replace (p + 5) with (p + 4 + 1) by ring. now apply D1. }
  assert (E5 : forall y, 0 <= y <= h -> is_derive s5 y (s6 y)).
  { intros y Hy. do 5 (apply is_derive_scal). replace (p + 6) with (p + 5 + 1) by ring. now apply D2. }
  set (k := fun y => integral y - y * y / 6 * s1 y + 7 / 360 * (y * y * y * y) * s3 y - 2 * y * Rpower z (- p)).
  set (k1 := fun y => even p y - y / 3 * s1 y - y * y / 6 * s2 y + 7 / 90 * (y * y * y) * s3 y
                      + 7 / 360 * (y * y * y * y) * s4 y - 2 * Rpower z (- p)).
  set (k2 := fun y => 2 / 3 * s1 y - 2 / 3 * y * s2 y + / 15 * (y * y) * s3 y + 7 / 45 * (y * y * y) * s4 y
                      + 7 / 360 * (y * y * y * y) * s5 y).
  set (k3 := fun y => - (8 / 15) * y * s3 y + 8 / 15 * (y * y) * s4 y + 7 / 30 * (y * y * y) * s5 y
                      + 7 / 360 * (y * y * y * y) * s6 y).
  assert (K1 : forall y, 0 <= y <= h -> is_derive k y (k1 y)).
  { intros y Hy. pose proof (derive_integral y ltac:(lra) ltac:(lra)) as DI. specialize (E1 y Hy). specialize (E3 y Hy).
    unfold k. auto_derive.
    - repeat split; eexists; eassumption.
    - rewrite (is_derive_unique (fun x : R => integral x) _ _ DI), (is_derive_unique (fun x : R => s1 x) _ _ E1),
        (is_derive_unique (fun x : R => s3 x) _ _ E3). unfold k1. field. }
  assert (K2 : forall y, 0 <= y <= h -> is_derive k1 y (k2 y)).
  { intros y Hy. specialize (E0 y Hy). specialize (E1 y Hy). specialize (E2 y Hy). specialize (E3 y Hy).
    specialize (E4 y Hy). unfold k1. auto_derive.
    - repeat split; eexists; eassumption.
    - rewrite (is_derive_unique (fun x : R => even p x) _ _ E0), (is_derive_unique (fun x : R => s1 x) _ _ E1),
        (is_derive_unique (fun x : R => s2 x) _ _ E2), (is_derive_unique (fun x : R => s3 x) _ _ E3),
        (is_derive_unique (fun x : R => s4 x) _ _ E4). unfold k2. field. }
  assert (K3 : forall y, 0 <= y <= h -> is_derive k2 y (k3 y)).
  { intros y Hy. specialize (E1 y Hy). specialize (E2 y Hy). specialize (E3 y Hy). specialize (E4 y Hy).
    specialize (E5 y Hy). unfold k2. auto_derive.
    - repeat split; eexists; eassumption.
    - rewrite (is_derive_unique (fun x : R => s1 x) _ _ E1), (is_derive_unique (fun x : R => s2 x) _ _ E2),
        (is_derive_unique (fun x : R => s3 x) _ _ E3), (is_derive_unique (fun x : R => s4 x) _ _ E4),
        (is_derive_unique (fun x : R => s5 x) _ _ E5). unfold k3. field. }
  assert (P3 : forall y, 0 <= y <= h -> 0 <= k3 y).
  { intros y Hy. pose proof (odd_le (p + 3) y ltac:(lra) ltac:(lra) ltac:(lra)) as L.
    replace (p + 3 + 1) with (p + 4) in L by ring.
    pose proof (odd_nonneg (p + 5) y ltac:(lra) ltac:(lra) ltac:(lra)) as O5. pose proof (even_pos (p + 6) y) as P6.
    assert (A5 : 0 <= s5 y) by (unfold s5; repeat apply Rmult_le_pos; lra).
    assert (A6 : 0 <= s6 y) by (unfold s6; repeat apply Rmult_le_pos; lra).
    assert (A3 : s3 y <= y * s4 y).
    { unfold s3, s4. replace (y * (p * ((p + 1) * ((p + 2) * ((p + 3) * even (p + 4) y)))))
        with (p * ((p + 1) * ((p + 2) * (y * ((p + 3) * even (p + 4) y))))) by ring.
      repeat (apply Rmult_le_compat_l; [lra|]). exact L. }
    assert (Y : 0 <= y * y * y) by (repeat apply Rmult_le_pos; lra).
    assert (Y4 : 0 <= y * y * y * y) by (repeat apply Rmult_le_pos; lra).
    assert (B : y * s3 y <= y * (y * s4 y)) by (apply Rmult_le_compat_l; lra).
    assert (C5 : 0 <= y * y * y * s5 y) by now apply Rmult_le_pos.
    assert (C6 : 0 <= y * y * y * y * s6 y) by now apply Rmult_le_pos.
    unfold k3. lra. }
  assert (Z : forall q, odd q 0 = 0) by exact odd_0.
  assert (P2 : forall y, 0 <= y <= h -> 0 <= k2 y).
  { intros y Hy. apply (rises_from_0 k2 k3 y ltac:(lra)).
    - unfold k2, s1, s3, s5. rewrite !Z. field.
    - intros w Hw. apply K3. lra.
    - intros w Hw. apply P3. lra. }
  assert (P1 : forall y, 0 <= y <= h -> 0 <= k1 y).
  { intros y Hy. apply (rises_from_0 k1 k2 y ltac:(lra)).
    - unfold k1, s1, s3. rewrite !Z, even_0. field.
    - intros w Hw. apply K2. lra.
    - intros w Hw. apply P2. lra. }
  assert (P0 : 0 <= k h).
  { apply (rises_from_0 k k1 h Hh).
    - unfold k, integral, s1, s3. rewrite !Z. field. lra.
    - exact K1.
    - exact P1. }
  unfold k, s1, s3 in P0. lra.
Qed.
End Midpoint.

Definition tail_lower (p y : R) : R := Rpower y (1 - p) / (p - 1) - p / 24 * Rpower y (- (p + 1)).
Definition tail_upper (p y : R) : R := tail_lower p y + 7 / 5760 * (p * ((p + 1) * ((p + 2) * Rpower y (- (p + 3))))).

Section Steps.
Variables (p y : R).
Hypotheses (Hp : 1 < p) (Hy : 0 < y).

Lemma step_lower : tail_lower p y - tail_lower p (y + 1) <= Rpower (y + / 2) (- p).
Proof.
  pose proof (midpoint_lower (y + / 2) p Hp (/ 2) ltac:(lra) ltac:(lra)) as H. unfold integral, odd in H.
  replace (y + / 2 - / 2) with y in H by ring. replace (y + / 2 + / 2) with (y + 1) in H by lra.
  replace (- (p - 1)) with (1 - p) in H by ring. unfold tail_lower.
  match goal with |- ?l <= ?r => match type of H with ?a <= ?b => replace l with a; [replace r with b; [exact H|]|] end end.
  - field.
  - field. lra.
Qed.

Lemma step_upper : Rpower (y + / 2) (- p) <= tail_upper p y - tail_upper p (y + 1).
Proof.
  pose proof (midpoint_upper (y + / 2) p Hp (/ 2) ltac:(lra) ltac:(lra)) as H. unfold integral, odd in H.
  replace (y + / 2 - / 2) with y in H by ring. replace (y + / 2 + / 2) with (y + 1) in H by lra.
  replace (- (p - 1)) with (1 - p) in H by ring. unfold tail_upper, tail_lower.
  match goal with |- ?l <= ?r => match type of H with ?a <= ?b => replace l with a; [replace r with b; [exact H|]|] end end.
  - field. lra.
  - field.
Qed.

End Steps.

(* ------------------------------------------------------------------------------------------ the tail of (t + c)^-p *)
Lemma is_lim_power q y0 : 0 < q -> is_lim_seq (fun n => Rpower (INR n + y0) (- q)) 0.
Proof.
  intros Hq. assert (L : is_lim_seq (fun n => INR n + y0) p_infty).
  { apply (is_lim_seq_plus _ _ p_infty y0); [apply is_lim_seq_INR|apply is_lim_seq_const|reflexivity]. }
  apply is_lim_ln_seq in L.
  apply (is_lim_comp_seq exp (fun n => - q * ln (INR n + y0)) m_infty 0); [apply is_lim_exp_m| |].
  - exists 0%nat. discriminate.
  - replace m_infty with (Rbar_mult (- q) p_infty).
    + now apply is_lim_seq_scal_l.
    + simpl. destruct (Rle_dec 0 (- q)); [exfalso; lra|reflexivity].
Qed.

Lemma is_lim_tail_lower p y0 : 1 < p -> is_lim_seq (fun n => tail_lower p (INR n + y0)) 0.
Proof.
  intros Hp. unfold tail_lower. replace (Finite 0) with (Finite (0 * / (p - 1) - p / 24 * 0)) by (f_equal; ring).
  apply is_lim_seq_minus'.
  - apply (is_lim_seq_scal_r _ (/ (p - 1)) 0). replace (1 - p) with (- (p - 1)) by ring. apply is_lim_power. lra.
  - apply (is_lim_seq_scal_l _ (p / 24) 0). apply is_lim_power. lra.
Qed.

Lemma is_lim_tail_upper p y0 : 1 < p -> is_lim_seq (fun n => tail_upper p (INR n + y0)) 0.
Proof.
  intros Hp. unfold tail_upper.
  replace (Finite 0) with (Finite (0 + 7 / 5760 * (p * ((p + 1) * ((p + 2) * 0))))) by (f_equal; ring).
  apply is_lim_seq_plus'; [now apply is_lim_tail_lower|].
  apply (is_lim_seq_scal_l _ (7 / 5760) (p * ((p + 1) * ((p + 2) * 0)))).
  apply (is_lim_seq_scal_l _ p ((p + 1) * ((p + 2) * 0))).
  apply (is_lim_seq_scal_l _ (p + 1) ((p + 2) * 0)).
  apply (is_lim_seq_scal_l _ (p + 2) 0). apply is_lim_power. lra.
Qed.

Definition shifted_power (p c : R) (t : nat) : R := Rpower (INR t + c) (- p).

Lemma shifted_power_converges p c : 1 < p -> 0 < c -> ex_series (shifted_power p c).
Proof.
  intros Hp Hc. apply (power_converges _ 1 p 1 Hp Rlt_0_1). intros t Ht. unfold shifted_power.
  rewrite Rabs_right, Rmult_1_l by (left; apply Rpower_pos). apply Rpower_ge_base; lra.
Qed.

Theorem power_tail p c j : 1 < p -> 0 < c -> 0 < INR j + c - / 2 ->
  tail_lower p (INR j + c - / 2) <= tail (shifted_power p c) j <= tail_upper p (INR j + c - / 2).
Proof.
  intros Hp Hc Hj. assert (E : ex_series (fun n => shifted_power p c (j + n))).
  { apply ex_series_from. now apply shifted_power_converges. }
  assert (Y : forall n, INR (j + n) + c - / 2 = INR n + (INR j + c - / 2)) by (intros n; rewrite plus_INR; ring).
  split.
  - pose proof (series_ge_telescope _ (fun n => tail_lower p (INR n + (INR j + c - / 2))) E
                  (is_lim_tail_lower p _ Hp)) as T. cbv beta in T. change (INR 0) with 0 in T. rewrite Rplus_0_l in T. apply T.
    intros n. unfold shifted_power. pose proof (pos_INR n).
    replace (INR (j + n) + c) with (INR n + (INR j + c - / 2) + / 2) by (rewrite plus_INR; lra).
    assert (S1 := step_lower p (INR n + (INR j + c - / 2)) Hp ltac:(lra)).
    replace (INR (S n) + (INR j + c - / 2)) with (INR n + (INR j + c - / 2) + 1)
      by (rewrite S_INR; ring). exact S1.
  - pose proof (series_le_telescope_lim _ (fun n => tail_upper p (INR n + (INR j + c - / 2))) E
                  (is_lim_tail_upper p _ Hp)) as T. cbv beta in T. change (INR 0) with 0 in T. rewrite Rplus_0_l in T. apply T.
    intros n. unfold shifted_power. pose proof (pos_INR n).
    replace (INR (j + n) + c) with (INR n + (INR j + c - / 2) + / 2) by (rewrite plus_INR; lra).
    assert (S1 := step_upper p (INR n + (INR j + c - / 2)) Hp ltac:(lra)).
    replace (INR (S n) + (INR j + c - / 2)) with (INR n + (INR j + c - / 2) + 1) by (rewrite S_INR; ring). exact S1.
Qed.
