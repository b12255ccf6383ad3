(* The exact receptive field of any formula that has a certificate: the first N terms are added up one by one, and the
   certificate bounds the rest. For weights that fall faster than every power, a certificate with a large exponent makes
   the rest as small as one likes. *)
From Coq Require Import Reals ZArith QArith Qreals Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder Numbers Monomials Formula Certificates Fields PowerTails TailCheck
  PowerTrf Zoo.
Open Scope R_scope.

Local Opaque within iZ iadd isub imul iexp iQ enclose_at.

Section General.
Variables (prec : I.F.precision) (c : certificate) (e : formula).

Definition weight_at (t : nat) : I.type := enclose_at prec (iZ prec (Z.of_nat t)) e.

(* the rest from j on: exp(ln_constant) times the tail of t^-s *)
Definition rest_above (j : Z) : I.type := imul prec (iexp prec (iQ prec (ln_constant c))) (hi prec (exponent c) 0 j).

Definition first_of (p : place) : Z := match p with At z => Z.max z 1 | Exp_of _ => 0 end.

Definition check_general (eps : Q) (n : Z) (N : nat) : bool :=
  match says c, depth c, from c with
  | Upper, O, At z =>
      negb (Qle_bool (exponent c) 1) &&
      check_trf prec weight_at (fun _ => iZ prec 0) rest_above (Z.max z 1) eps n N
  | _, _, _ => false
  end.

Theorem check_general_correct (b : nat -> R) eps n N : (forall t, b t = eval e (INR t)) -> (forall t, 0 <= b t) ->
  certifies c b -> check_general eps n N = true -> is_trf b (Q2R eps) (Z.to_nat n).
Proof.
  intros Hb Pb Hc H. unfold check_general in H. unfold certifies in Hc.
  destruct (says c) eqn:S; try discriminate. destruct (depth c) eqn:D; [|discriminate].
  destruct (from c) as [z|q] eqn:F; [|discriminate]. apply Bool.andb_true_iff in H. destruct H as [H1 H].
  set (s := Q2R (exponent c)). set (C := exp (Q2R (ln_constant c))).
  assert (Ps : 1 < s).
  { apply Bool.negb_true_iff in H1. destruct (Qlt_le_dec 1 (exponent c)) as [h|h].
    - apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. unfold s. lra.
    - apply Qle_bool_iff in h. congruence. }
  assert (Up : forall t, (Z.max z 1 <= Z.of_nat t)%Z -> b t <= C * shifted_power s 1 (t - 1)).
  { intros t Ht. assert (Ht1 : (1 <= t)%nat) by lia. pose proof (INR_ge_1 t Ht1).
    assert (Hz : value (At z) <= INR t) by (simpl; rewrite INR_IZR_INZ; apply IZR_le; lia).
    specialize (Hc t Hz). rewrite Rabs_right in Hc by (apply Rle_ge, Pb). apply Rle_trans with (1 := Hc).
    right. unfold bound. rewrite D, scale_0. fold s. fold C. unfold shifted_power. rewrite minus_INR by exact Ht1.
    replace (INR t - INR 1 + 1) with (INR t) by (simpl; ring). unfold Rdiv. now rewrite <- Rpower_Ropp. }
  assert (PC : 0 < C) by apply exp_pos.
  pose proof (shifted_power_converges s 1 Ps Rlt_0_1) as Hp.
  assert (Hs : ex_series b).
  { apply (ex_series_from b (Z.to_nat (Z.max z 1))).
    apply (ex_series_below _ (fun n => C * shifted_power s 1 (Z.to_nat (Z.max z 1) - 1 + n)%nat) 0).
    - intros m _. split; [apply Pb|]. replace (Z.to_nat (Z.max z 1) - 1 + m)%nat with (Z.to_nat (Z.max z 1) + m - 1)%nat by lia.
      apply Up. lia.
    - apply (ex_series_scal_l C (fun n => shifted_power s 1 (Z.to_nat (Z.max z 1) - 1 + n)%nat)). now apply ex_series_from. }
  apply (check_trf_correct prec weight_at (fun _ => iZ prec 0) rest_above (Z.max z 1) b Pb Hs) with N; [| | |exact H].
  - intros t. rewrite Hb. unfold weight_at. apply enclose_at_correct. rewrite INR_IZR_INZ. apply iZ_correct.
  - intros j _. exists 0. split; [apply iZ_correct|]. now apply tail_nonneg.
  - intros j Hj. assert (Hj1 : (1 <= j)%nat) by lia. pose proof (INR_ge_1 j Hj1) as Pj.
    assert (E0 : INR j + Q2R 0 - / 2 = INR (j - 1) + 1 - / 2).
    { rewrite minus_INR by exact Hj1. unfold Q2R. simpl. lra. }
    exists (C * tail_upper s (INR j + Q2R 0 - / 2)). split.
    + apply imul_correct; [apply iexp_correct, iQ_correct|]. apply hi_correct; [exact Ps|].
      unfold Q2R; simpl; lra.
    + apply Rle_trans with (C * tail (shifted_power s 1) (j - 1)).
      * rewrite <- tail_scal. unfold tail. apply Series_le.
        -- intros m. split; [apply Pb|]. replace (j - 1 + m)%nat with (j + m - 1)%nat by lia. apply Up. lia.
        -- apply (ex_series_scal_l C (fun n => shifted_power s 1 (j - 1 + n)%nat)). now apply ex_series_from.
      * apply Rmult_le_compat_l; [lra|]. rewrite E0. apply power_tail; [exact Ps|lra|].
        pose proof (pos_INR (j - 1)). lra.
Qed.
End General.
