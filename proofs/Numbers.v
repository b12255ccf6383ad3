(* The numbers that the certificate checker computes with: intervals with binary ends, from the Interval library, over
   Coq's own integers (so no axiom about machine numbers is used). Each operation comes with its inclusion. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Flocq Require Import Core.
From Interval Require Import Real.Xreal Interval.Interval Interval.Float_full Float.Specific_ops Float.Specific_stdz
  Float.Specific_sig Float.Basic Float.Sig.
From Farfield Require Import Logarithms.
Open Scope R_scope.

Module F := SpecificFloat StdZRadix2.
Module I := FloatIntervalFull F.

Definition within (i : I.type) (x : R) : Prop := contains (I.convert i) (Xreal x).

Lemma within_nai x : within I.nai x.
Proof. unfold within. rewrite I.nai_correct. exact Logic.I. Qed.

(* an operation that has no value at a point has given "not an interval", which holds every number *)
Lemma within_undefined i x : contains (I.convert i) Xnan -> within i x.
Proof. intros H. unfold within. apply contains_Xnan in H. now rewrite H. Qed.

Lemma within_between i x y z : within i x -> within i y -> x <= z <= y -> within i z.
Proof. intros Hx Hy Hz. exact (contains_connected (I.convert i) x y Hx Hy z Hz). Qed.

Section Operations.
Variable prec : I.F.precision.

Definition iZ (z : Z) : I.type := I.fromZ prec z.
Lemma iZ_correct z : within (iZ z) (IZR z).
Proof. apply I.fromZ_correct. Qed.

Definition iadd := I.add prec.
Lemma iadd_correct a b x y : within a x -> within b y -> within (iadd a b) (x + y).
Proof. intros Ha Hb. exact (I.add_correct prec a b (Xreal x) (Xreal y) Ha Hb). Qed.

Definition imul := I.mul prec.
Lemma imul_correct a b x y : within a x -> within b y -> within (imul a b) (x * y).
Proof. intros Ha Hb. exact (I.mul_correct prec a b (Xreal x) (Xreal y) Ha Hb). Qed.

Definition isub := I.sub prec.
Lemma isub_correct a b x y : within a x -> within b y -> within (isub a b) (x - y).
Proof. intros Ha Hb. exact (I.sub_correct prec a b (Xreal x) (Xreal y) Ha Hb). Qed.

Definition ineg := I.neg.
Lemma ineg_correct a x : within a x -> within (ineg a) (- x).
Proof. intros Ha. exact (I.neg_correct a (Xreal x) Ha). Qed.

Definition isqr := I.sqr prec.
Lemma isqr_correct a x : within a x -> within (isqr a) (x * x).
Proof. intros Ha. exact (I.sqr_correct prec a (Xreal x) Ha). Qed.

Definition iabs := I.abs.
Lemma iabs_correct a x : within a x -> within (iabs a) (Rabs x).
Proof. intros Ha. exact (I.abs_correct a (Xreal x) Ha). Qed.

Definition iinv := I.inv prec.
Lemma iinv_correct a x : within a x -> within (iinv a) (/ x).
Proof.
  intros Ha. pose proof (I.inv_correct prec a (Xreal x) Ha) as H. simpl in H. unfold Xinv' in H.
  destruct (is_zero x); [now apply within_undefined|exact H].
Qed.

(* rational numbers *)
Definition iQ (q : Q) : I.type :=
  match Qden q with
  | 1%positive => iZ (Qnum q)
  | d => imul (iZ (Qnum q)) (iinv (iZ (Zpos d)))
  end.

Lemma iQ_correct q : within (iQ q) (Q2R q).
Proof.
  unfold iQ, Q2R. destruct q as [n d]; simpl.
  assert (G : within (imul (iZ n) (iinv (iZ (Zpos d)))) (IZR n * / IZR (Zpos d))).
  { apply imul_correct; [apply iZ_correct|]. apply iinv_correct, iZ_correct. }
  destruct d; try exact G. rewrite Rinv_1, Rmult_1_r. apply iZ_correct.
Qed.

Definition isqrt := I.sqrt prec.
Lemma isqrt_correct a x : within a x -> within (isqrt a) (sqrt x).
Proof.
  intros Ha. pose proof (I.sqrt_correct prec a (Xreal x) Ha) as H. simpl in H. unfold Xsqrt' in H.
  try (destruct (is_negative x); [now apply within_undefined|]). exact H.
Qed.

Definition iln := I.ln prec.
Lemma iln_correct a x : within a x -> within (iln a) (ln x).
Proof.
  intros Ha. pose proof (I.ln_correct prec a (Xreal x) Ha) as H. simpl in H. unfold Xln' in H.
  destruct (is_positive x); [exact H|now apply within_undefined].
Qed.

Definition icos := I.cos prec.
Lemma icos_correct a x : within a x -> within (icos a) (cos x).
Proof. intros Ha. exact (I.cos_correct prec a (Xreal x) Ha). Qed.

Definition isin := I.sin prec.
Lemma isin_correct a x : within a x -> within (isin a) (sin x).
Proof. intros Ha. exact (I.sin_correct prec a (Xreal x) Ha). Qed.

Definition iatan := I.atan prec.
Lemma iatan_correct a x : within a x -> within (iatan a) (atan x).
Proof. intros Ha. exact (I.atan_correct prec a (Xreal x) Ha). Qed.

Definition ipi := I.pi prec.
Lemma ipi_correct : within ipi PI.
Proof. apply I.pi_correct. Qed.

Definition ifloor := I.nearbyint rnd_DN.
Lemma ifloor_correct a x : within a x -> within (ifloor a) (IZR (Int_part x)).
Proof.
  intros Ha. pose proof (I.nearbyint_correct rnd_DN a (Xreal x) Ha) as H. simpl in H.
  replace (Int_part x) with (Zfloor x) by reflexivity. exact H.
Qed.

(* ---------------------------------------------------------------------------------------------------------- signs *)
Definition ipos (a : I.type) : bool := match I.sign_strict a with Xgt => true | _ => false end.
Definition ineg_strict (a : I.type) : bool := match I.sign_strict a with Xlt => true | _ => false end.
Definition inonneg (a : I.type) : bool := match I.sign_large a with Xgt | Xeq => true | _ => false end.
Definition inonpos (a : I.type) : bool := match I.sign_large a with Xlt | Xeq => true | _ => false end.
Definition izero (a : I.type) : bool := match I.sign_large a with Xeq => true | _ => false end.

Lemma ipos_correct a x : ipos a = true -> within a x -> 0 < x.
Proof.
  unfold ipos. intros H Ha. pose proof (I.sign_strict_correct a) as S. destruct (I.sign_strict a); try discriminate.
  destruct (S (Xreal x) Ha) as [_ P]. exact P.
Qed.

Lemma ineg_strict_correct a x : ineg_strict a = true -> within a x -> x < 0.
Proof.
  unfold ineg_strict. intros H Ha. pose proof (I.sign_strict_correct a) as S.
  destruct (I.sign_strict a); try discriminate. destruct (S (Xreal x) Ha) as [_ P]. exact P.
Qed.

Lemma inonneg_correct a x : inonneg a = true -> within a x -> 0 <= x.
Proof.
  unfold inonneg. intros H Ha. pose proof (I.sign_large_correct a) as S. destruct (I.sign_large a); try discriminate.
  - specialize (S (Xreal x) Ha). injection S as ->. lra.
  - destruct (S (Xreal x) Ha) as [_ P]. exact P.
Qed.

Lemma inonpos_correct a x : inonpos a = true -> within a x -> x <= 0.
Proof.
  unfold inonpos. intros H Ha. pose proof (I.sign_large_correct a) as S. destruct (I.sign_large a); try discriminate.
  - specialize (S (Xreal x) Ha). injection S as ->. lra.
  - destruct (S (Xreal x) Ha) as [_ P]. exact P.
Qed.

Lemma izero_correct a x : izero a = true -> within a x -> x = 0.
Proof.
  unfold izero. intros H Ha. pose proof (I.sign_large_correct a) as S. destruct (I.sign_large a); try discriminate.
  specialize (S (Xreal x) Ha). now injection S.
Qed.

(* -------------------------------------------------------------------------------------------------- ranges of sets *)
Definition ijoin := I.join.
Lemma ijoin_l a b x : within a x -> within (ijoin a b) x.
Proof. intros H. apply I.join_correct. now left. Qed.
Lemma ijoin_r a b x : within b x -> within (ijoin a b) x.
Proof. intros H. apply I.join_correct. now right. Qed.

Definition imeet := I.meet.
Lemma imeet_correct a b x : within a x -> within b x -> within (imeet a b) x.
Proof. apply I.meet_correct. Qed.

(* everything between 0 and a *)
Definition ifrom0 (a : I.type) : I.type := ijoin (iZ 0) a.
Lemma ifrom0_correct a x y : within a y -> 0 <= x <= y \/ y <= x <= 0 -> within (ifrom0 a) x.
Proof.
  intros Ha H. assert (Z : within (ifrom0 a) 0) by (apply ijoin_l, iZ_correct).
  assert (Y : within (ifrom0 a) y) by now apply ijoin_r.
  destruct H as [H|H]; [now apply within_between with 0 y|now apply within_between with y 0].
Qed.

(* everything above a *)
Definition iabove (a : I.type) : I.type := I.upper_extent a.
Lemma iabove_correct a x y : within a y -> y <= x -> within (iabove a) x.
Proof. intros Ha H. exact (I.upper_extent_correct a x y Ha H). Qed.

Definition iunit : I.type := ijoin (iZ (-1)) (iZ 1).
Lemma iunit_correct x : -1 <= x <= 1 -> within iunit x.
Proof.
  intros H. apply within_between with (-1) 1; [apply ijoin_l, iZ_correct|apply ijoin_r, iZ_correct|exact H].
Qed.

(* the exponential, cut off beyond exp (+-4096): there its value plays no role and costs time *)
Definition far_out : Z := 4096.
Definition iexp (a : I.type) : I.type :=
  if ineg_strict (iadd a (iZ far_out)) then ifrom0 (I.exp prec (iZ (- far_out)))
  else if ipos (isub a (iZ far_out)) then iabove (I.exp prec (iZ far_out))
  else I.exp prec a.
Lemma iexp_correct a x : within a x -> within (iexp a) (exp x).
Proof.
  intros Ha. unfold iexp.
  assert (E : forall z, within (I.exp prec (iZ z)) (exp (IZR z))).
  { intros z. exact (I.exp_correct prec (iZ z) (Xreal (IZR z)) (iZ_correct z)). }
  destruct (ineg_strict (iadd a (iZ far_out))) eqn:S1.
  - apply ineg_strict_correct with (x := x + IZR far_out) in S1; [|apply iadd_correct; [exact Ha|apply iZ_correct]].
    apply ifrom0_correct with (exp (IZR (- far_out))); [apply E|]. left. split; [left; apply exp_pos|].
    apply exp_le. rewrite opp_IZR. lra.
  - destruct (ipos (isub a (iZ far_out))) eqn:S2.
    + apply ipos_correct with (x := x - IZR far_out) in S2; [|apply isub_correct; [exact Ha|apply iZ_correct]].
      apply iabove_correct with (exp (IZR far_out)); [apply E|]. apply exp_le. lra.
    + exact (I.exp_correct prec a (Xreal x) Ha).
Qed.
End Operations.

(* the end of an interval that lies closer to 0, as a rational number: a guess that no proof relies on *)
Definition end_as_Q (f : F.type) : Q :=
  match f with
  | Specific_ops.Fnan => 0
  | Specific_ops.Float m e =>
      if (Z.abs e <? 400)%Z then if (0 <=? e)%Z then inject_Z (m * 2 ^ e) else (m # Z.to_pos (2 ^ (- e))) else 0
  end.
Definition end_near_0 (a : I.type) : Q :=
  if ipos a then end_as_Q (I.lower a) else if ineg_strict a then end_as_Q (I.upper a) else 0.
