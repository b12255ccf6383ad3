(* What a file that Farfield writes needs: this library and its tactics.

   A weight is a definition `b (t : nat) : R := ...` in which the distance occurs as INR t.
     certify p             `certifies c b`, by the checker with a precision of p bits
     verdict H             `ex_series b` or `~ ex_series b` from H : certifies c b; also for a sum that starts later,
                           `ex_series (fun n => b (3 + n)%nat)`
     side                  a hypothesis about constants: 0 < 3 / 2, 128 = 2 * INR 64
     made T p              the same from the certificates T of its residue classes or summands
     below H               `window_below b` from H : ex_series b
     windows H             `windowed R_NormedModule b` or its negation from the verdict H, for weights exp(...)
     field_of_alibi k p, field_of_power p c d P C N bits, field_of_type1 k C first N bits, field_of_window
                           `is_trf b eps (Z.to_nat n)`, the exact receptive field, where b is exp(-k t),
                           exp(-p ln(c + d t)), 1 / (1 + (k t)^2) or a window; N terms are added up, the rest is bounded
     field_of H N p        the same for any b with H : certifies c b *)
From Coq Require Export Reals ZArith QArith Qreals String Lra Lia.
From Coquelicot Require Export Coquelicot.
From Farfield Require Export Version Sums Logarithms Ladder Windowed Fields Envelope Zoo ZooClasses Numbers Formula Numeric Certificates
  Residues Composite PowerTails PowerTrf QuadraticTrf GeometricTrf WindowTrf GeneralTrf.
Open Scope R_scope.

Ltac weight_formula b :=
  let f := constr:(fun t : nat => ltac:(let w := eval red in (b t) in let e := reify (INR t) w in exact e)) in
  eval cbv beta in (f O).

Ltac by_computation := vm_cast_no_check (eq_refl true).

(* --------------------------------------------------------------------------------------------------------- verdicts *)
Ltac certify p :=
  lazymatch goal with
  | |- certifies ?c ?b =>
      let e := weight_formula b in
      refine (check_auto_correct (F.PtoP p) c e b (fun t => eq_refl) _); by_computation
  end.

Lemma later_sum_converges (b : nat -> R) m : ex_series b -> ex_series (fun n => b (m + n)%nat).
Proof. apply ex_series_from. Qed.
Lemma later_sum_diverges (b : nat -> R) m : ~ ex_series b -> ~ ex_series (fun n => b (m + n)%nat).
Proof. intros H K. apply H. now apply (ex_series_from b m). Qed.

Ltac verdict proof :=
  lazymatch goal with
  | |- ex_series (fun n => ?b (?m + n)%nat) =>
      refine (later_sum_converges b m (certified_convergence _ _ proof _)); by_computation
  | |- ~ ex_series (fun n => ?b (?m + n)%nat) =>
      refine (later_sum_diverges b m (certified_divergence _ _ proof _)); by_computation
  | |- ex_series _ => refine (certified_convergence _ _ proof _); by_computation
  | |- ~ ex_series _ => refine (certified_divergence _ _ proof _); by_computation
  end.

(* by residue classes and summands *)
Ltac made tree p :=
  lazymatch goal with
  | |- ex_series (fun n => ?b (?m + n)%nat) => refine (later_sum_converges b m _); made tree p
  | |- ~ ex_series (fun n => ?b (?m + n)%nat) => refine (later_sum_diverges b m _); made tree p
  | |- ex_series ?b =>
      let e := weight_formula b in
      refine (converges_sound (F.PtoP p) tree e b (fun t => eq_refl) _); by_computation
  | |- ~ ex_series ?b =>
      let e := weight_formula b in
      refine (diverges_sound (F.PtoP p) tree e b (fun t => eq_refl) _); by_computation
  end.

(* what the verdict means for attention *)
Ltac below proof :=
  lazymatch goal with
  | |- window_below ?b =>
      let e := weight_formula b in
      refine (convergent_window_below b (fun t => nonneg_correct e (INR t) (pos_INR t) _) proof); by_computation
  end.

Lemma exp_windowed (r : nat -> R) : ex_series (fun t => exp (r t)) -> windowed R_NormedModule (fun t => exp (r t)).
Proof. apply windowed_iff_convergent_R; intros; try (left; apply exp_pos); apply exp_pos. Qed.
Lemma exp_not_windowed (r : nat -> R) : ~ ex_series (fun t => exp (r t)) -> ~ windowed R_NormedModule (fun t => exp (r t)).
Proof. intros H W. apply H. apply windowed_iff_convergent_R; intros; try (left; apply exp_pos); try apply exp_pos; exact W. Qed.

Ltac windows proof :=
  lazymatch goal with
  | |- windowed _ _ => exact (exp_windowed _ proof)
  | |- ~ windowed _ _ => exact (exp_not_windowed _ proof)
  end.

(* --------------------------------------------------------------------------------------------------- receptive fields *)
(* the rational number that was written *)
Ltac rational_of x :=
  lazymatch x with
  | IZR ?a / IZR ?b => let d := eval vm_compute in (Z.to_pos b) in let n := eval vm_compute in a in constr:(Qmake n d)
  | IZR ?a => constr:(inject_Z a)
  | Q2R ?q => q
  end.

(* one weight is the other, written differently *)
Ltac same_weight b :=
  let t := fresh "t" in intros t; unfold b;
  cbv beta delta [alibi affine_power type1 window_mask];
  first [reflexivity | f_equal; field | f_equal; f_equal; [field|f_equal; field] | f_equal; f_equal; f_equal; field].

Ltac positive := first [lra | apply Rpower_pos | numeric 40%positive].

Ltac side := first [assumption | positive | rewrite INR_IZR_INZ; simpl; lra].

Ltac field_of_alibi k p :=
  lazymatch goal with
  | |- is_trf ?b ?eps (Z.to_nat ?n) =>
      let q := rational_of eps in let f := reify tt k in
      refine (trf_ext (alibi k) b eps (Z.to_nat n) _ _);
      [same_weight b
      |replace eps with (Q2R q) by rational; refine (check_alibi_correct (F.PtoP p) f q n 0 _); by_computation]
  end.

(* exp(-p ln(c + d t)); P and C are p and c/d as rational numbers *)
Ltac field_of_power p c d P C N bits :=
  lazymatch goal with
  | |- is_trf ?b ?eps (Z.to_nat ?n) =>
      let q := rational_of eps in
      refine (trf_ext (affine_power p c d) b eps (Z.to_nat n) _ _);
      [same_weight b
      |refine (affine_power_trf (F.PtoP bits) P C q n N p c d eps _ _ _ _ _);
       [rational|positive|rational|rational|by_computation]]
  end.

(* 1 / (1 + (k t)^2); C is 1/k^2, a rational number, and first^2 >= C + 1/8 *)
Ltac field_of_type1 k C first N bits :=
  lazymatch goal with
  | |- is_trf ?b ?eps (Z.to_nat ?n) =>
      let q := rational_of eps in
      refine (trf_ext (type1 k) b eps (Z.to_nat n) _ _);
      [same_weight b
      |refine (type1_trf (F.PtoP bits) C q first n N k eps _ _ _);
       [first [rational | slope]|rational|by_computation]]
  end
with slope :=
  unfold Q2R; simpl;
  lazymatch goal with
  | |- Rpower 2 ?x * Rpower 2 ?x * (IZR ?d * / 1) = 1 =>
      let n := eval vm_compute in (Z.to_nat (Z.log2 d)) in
      replace (IZR d * / 1) with (2 ^ n) by (simpl; lra); apply slope_square; simpl; lra
  end.

Ltac field_of_window :=
  lazymatch goal with
  | |- is_trf ?b ?eps (Z.to_nat ?n) =>
      let q := rational_of eps in
      replace eps with (Q2R q) by rational;
      lazymatch eval cbv delta [b] in b with
      | fun t => if Rlt_dec _ (IZR ?w) then _ else _ =>
          refine (trf_ext (window_mask (IZR w)) b (Q2R q) (Z.to_nat n) (fun t => eq_refl) (check_window_correct w q n _))
      | fun t => if Rle_dec _ (IZR ?w) then _ else _ =>
          refine (trf_ext (window_paper_mask (IZR w)) b (Q2R q) (Z.to_nat n) (fun t => eq_refl) (check_paper_window_correct w q n _))
      end; by_computation
  end.

Ltac field_of H N bits :=
  lazymatch goal with
  | |- is_trf ?b ?eps (Z.to_nat ?n) =>
      let q := rational_of eps in let e := weight_formula b in
      replace eps with (Q2R q) by rational;
      refine (check_general_correct (F.PtoP bits) _ e b q n N (fun t => eq_refl)
                (fun t => Rlt_le _ _ (exp_pos _)) H _); by_computation
  end.
