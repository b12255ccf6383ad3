(* Certificates as Farfield prints them: what they claim, a checker that decides the claim for a given formula, and the
   verdict that follows.

   The fields are those of the JSON: claim, depth, exponent, ln_constant, from. With S = scale depth exponent,
     Upper    |b(t)| <= exp(ln_constant) / S(t)    for all integers t >= from
     Lower    b(t) >= exp(ln_constant) / S(t)
     Finite_support  b(t) = 0 *)
From Coq Require Import Reals ZArith QArith Qreals List Psatz Lia.
From Coquelicot Require Import Coquelicot.
From Farfield Require Import Sums Logarithms Ladder Numbers Monomials Taylor Expansions Functions Formula Analysis.
Import ListNotations.
Open Scope R_scope.
Open Scope lazy_bool_scope. (* a &&& b computes b only if it must *)

(* proofs below go by the inclusion of each operation, never by its definition *)
Local Opaque within iZ iadd isub imul ineg iinv isqr iabs iexp iln icos isin ipi ifrom0 iabove imeet iunit
  fadd fscale fneg fmul tidy square_term constant.

Inductive claim : Type := Upper | Lower | Finite_support.

(* an integer, or exp of such a number *)
Inductive place : Type := At (z : Z) | Exp_of (p : place).

Fixpoint value (p : place) : R := match p with At z => IZR z | Exp_of q => exp (value q) end.

Record certificate : Type := Certificate {
  says : claim;
  depth : nat;
  exponent : Q;
  ln_constant : Q;
  from : place
}.

Definition bound (c : certificate) (x : R) : R := exp (Q2R (ln_constant c)) / scale (depth c) (Q2R (exponent c)) x.

Definition certifies (c : certificate) (b : nat -> R) : Prop :=
  forall t : nat, value (from c) <= INR t ->
    match says c with
    | Upper => Rabs (b t) <= bound c (INR t)
    | Lower => bound c (INR t) <= b t
    | Finite_support => b t = 0
    end.

(* ---------------------------------------------------------------------------------------- logarithms of a place *)
Section Known.
Variable prec : I.F.precision.

Fixpoint logs_of (i : I.type) (n : nat) : list I.type :=
  match n with O => [] | S m => i :: logs_of (iln prec i) m end.

Fixpoint known_at (p : place) : list I.type :=
  match p with
  | At z => logs_of (iZ prec z) 6
  | Exp_of q => let K := known_at q in iexp prec (nth 0 K I.nai) :: K
  end.

Lemma logs_shift i y : logs (S i) y = logs i (ln y).
Proof. induction i as [|i IH]; [reflexivity|]. cbn [logs] in *. now rewrite IH. Qed.

Lemma logs_of_correct n a y : within a y -> forall i, within (nth i (logs_of a n) I.nai) (logs i y).
Proof.
  revert a y. induction n as [|n IH]; intros a y Ha [|i]; cbn [logs_of nth]; try apply within_nai; [exact Ha|].
  rewrite logs_shift. apply IH. now apply iln_correct.
Qed.

Lemma known_at_correct p i : within (known (known_at p) i) (logs i (value p)).
Proof.
  unfold known. revert i. induction p as [z|q IH]; intros i.
  - apply logs_of_correct, iZ_correct.
  - cbn [known_at value]. destruct i as [|i]; cbn [nth].
    + apply iexp_correct. apply (IH 0%nat).
    + rewrite logs_shift, ln_exp. apply IH.
Qed.
End Known.

(* the scale as a monomial *)
Definition scale_mono (m : nat) (s : Q) : mono := 0%Q :: repeat 1%Q m ++ [s].

Lemma scale_mono_correct m s x : 0 < logs m x -> scale m (Q2R s) x = meval (scale_mono m s) x.
Proof.
  intros H. unfold meval, scale_mono. cbn [mdot]. replace (Q2R 0) with 0 by (unfold Q2R; simpl; lra).
  rewrite Rmult_0_l, Rplus_0_l.
  assert (G : forall n i, (forall l, (i <= l < i + n)%nat -> 0 < logs l x) ->
            exp (mdot (repeat 1%Q n ++ [s]) (S i) x) =
            exp (mdot (repeat 1%Q n) (S i) x) * exp (Q2R s * logs (S (i + n)) x)).
  { induction n as [|n IH]; intros i Hl; cbn [repeat app mdot].
    - rewrite Rplus_0_r, Nat.add_0_r, exp_0, Rmult_1_l. reflexivity.
    - rewrite !exp_plus, (IH (S i)) by (intros l Hl'; apply Hl; lia). replace (S i + n)%nat with (i + S n)%nat by lia. ring. }
  assert (P : forall n, (n <= m)%nat -> exp (mdot (repeat 1%Q n) 1 x) = product n x).
  { induction n as [|n IH]; intros Hn; [apply exp_0|].
    replace (repeat 1%Q (S n)) with (repeat 1%Q n ++ [1%Q]) by (rewrite <- repeat_cons; reflexivity).
    assert (A : forall k i, mdot (repeat 1%Q k ++ [1%Q]) i x = mdot (repeat 1%Q k) i x + logs (i + k) x).
    { induction k as [|k IHk]; intros i; cbn [repeat app mdot].
      - rewrite Nat.add_0_r. unfold Q2R. simpl. lra.
      - rewrite IHk. replace (S i + k)%nat with (i + S k)%nat by lia. ring. }
    rewrite A, exp_plus, IH by lia. cbn [product]. f_equal. simpl. apply exp_ln. apply logs_pos_le with m; [lia|exact H]. }
  rewrite (G m 0%nat); [|intros l Hl; apply logs_pos_le with m; [lia|exact H]].
  rewrite P by lia. reflexivity.
Qed.

(* --------------------------------------------------------------------------------------------------- the checker *)
Section Checker.
Variables (prec : I.F.precision) (c : certificate) (e : formula).

Definition negated_constant : expansion := constant (Exact (Qred (- ln_constant c))).

(* on the half line from `p` on, in logarithms: ln b + ln S - ln_constant has the right sign *)
Definition far_log (K : list I.type) : bool :=
  match snd (analyse prec K e) tt, log_mono prec K (scale_mono (depth c) (exponent c)) 0 with
  | Some f, Some g =>
      let h := fadd prec f (fadd prec g negated_constant) in
      match says c with Upper => fnonpos prec K h | Lower => fnonneg prec K h | Finite_support => false end
  | _, _ => false
  end.

(* the same for the values themselves: |b| - exp(ln_constant) / S <= 0 *)
Definition far_value (K : list I.type) : bool :=
  match says c, fst (analyse prec K e) with
  | Upper, Some f =>
      let g := [(mneg (scale_mono (depth c) (exponent c)),
                 Range (ineg (iexp prec (iQ prec (ln_constant c)))))] in
      fnonpos prec K (fadd prec f g) &&& fnonpos prec K (fadd prec (fneg prec f) g)
  | Finite_support, Some [] => true
  | _, _ => false
  end.

Definition far (p : place) : bool :=
  let K := known_at prec p in
  kpos K (depth c) &&& (far_log K ||| far_value K).

(* at one distance *)
Definition log_at (i : I.type) : I.type :=
  match e with
  | Exp a => enclose_at prec i a
  | _ => let v := enclose_at prec i e in if ipos v then iln prec v else I.nai
  end.

(* at all x in the interval i *)
Definition near (i : I.type) : bool :=
  let K := logs_of prec i 6 in
  let s := kdot prec K (scale_mono (depth c) (exponent c)) 0 in
  kpos K (depth c) &&&
  match says c with
  | Upper => inonpos (isub prec (iadd prec (log_at i) s) (iQ prec (ln_constant c))) |||
             inonpos (isub prec (imul prec (iabs (enclose_at prec i e)) (iexp prec s)) (iexp prec (iQ prec (ln_constant c))))
  | Lower => inonneg (isub prec (iadd prec (log_at i) s) (iQ prec (ln_constant c)))
  | Finite_support => izero (enclose_at prec i e)
  end.

(* at the integers a <= z < b: all at once if that is enough, otherwise in two halves *)
Fixpoint near_all (fuel : nat) (a b : Z) : bool :=
  (b <=? a)%Z ||| near (ijoin (iZ prec a) (iZ prec (b - 1))) |||
  match fuel with
  | O => false
  | S f => (a + 1 <? b)%Z &&& near_all f a ((a + b) / 2) &&& near_all f ((a + b) / 2) b
  end.

(* all integers: stretch by stretch up to `p`, together from there on *)
Definition check (p : place) : bool :=
  far p &&&
  match from c, p with
  | At z, At y => near_all 64 z y
  | Exp_of _, _ => true
  | At _, Exp_of _ => false
  end.

(* the first of the places z, 4 z, 16 z, ... from which on the half line can be treated as a whole *)
Fixpoint search (z : Z) (n : nat) : bool :=
  match n with
  | O => false
  | S m => if far (At z) then match from c with At y => near_all 64 y z | Exp_of _ => false end
           else search (4 * z) m
  end.

Definition check_auto : bool :=
  match from c with At z => search z 8 | Exp_of q => far (Exp_of q) end.

(* where the certificate begins with exp(...), the half line begins there too *)
Definition check_place (p : place) : place := match from c with At _ => p | Exp_of _ => from c end.

Lemma bound_mono x : 0 < logs (depth c) x ->
  bound c x = exp (Q2R (ln_constant c)) / meval (scale_mono (depth c) (exponent c)) x.
Proof. intros H. unfold bound. now rewrite scale_mono_correct. Qed.

Definition claim_at (x : R) : Prop :=
  match says c with
  | Upper => Rabs (eval e x) <= bound c x
  | Lower => bound c x <= eval e x
  | Finite_support => eval e x = 0
  end.

(* ln b + ln S <= ln_constant means b <= exp ln_constant / S *)
Lemma log_upper x v : 0 < logs (depth c) x -> 0 < v ->
  ln v + mdot (scale_mono (depth c) (exponent c)) 0 x - Q2R (ln_constant c) <= 0 -> Rabs v <= bound c x.
Proof.
  intros Hl Hv H. rewrite bound_mono by exact Hl. rewrite Rabs_right by lra. unfold meval, Rdiv.
  rewrite <- exp_Ropp, <- exp_plus. rewrite <- (exp_ln v Hv). apply exp_le. lra.
Qed.

Lemma log_lower x v : 0 < logs (depth c) x -> 0 < v ->
  0 <= ln v + mdot (scale_mono (depth c) (exponent c)) 0 x - Q2R (ln_constant c) -> bound c x <= v.
Proof.
  intros Hl Hv H. rewrite bound_mono by exact Hl. unfold meval, Rdiv.
  rewrite <- exp_Ropp, <- exp_plus. rewrite <- (exp_ln v Hv). apply exp_le. lra.
Qed.

Lemma far_correct p x : far p = true -> value p <= x -> claim_at x.
Proof.
  intros H Hx. unfold far in H. set (K := known_at prec p) in *.
  assert (HK : forall i, within (known K i) (logs i (value p))) by (intros i; apply known_at_correct).
  apply Bool.andb_true_iff in H. destruct H as [Hk H].
  pose proof (kpos_far K (value p) x HK Hx _ Hk) as Hl.
  destruct (analyse_sound prec K (value p) x HK Hx e) as [V L].
  apply Bool.orb_true_iff in H. destruct H as [H|H].
  - unfold far_log in H. destruct (snd (analyse prec K e) tt) as [f|]; [|discriminate].
    destruct (log_mono prec K (scale_mono (depth c) (exponent c)) 0) as [g|] eqn:G; [|discriminate].
    destruct (L f eq_refl) as [Pv Lf].
    pose proof (log_mono_correct prec K (value p) x HK Hx _ _ _ G) as Lg.
    assert (Lc : holds negated_constant x (- Q2R (ln_constant c))).
    { apply constant_correct. cbn [holds_c]. rewrite Q2R_red, Q2R_opp. reflexivity. }
    pose proof (fadd_correct prec f _ x _ _ Lf (fadd_correct prec g _ x _ _ Lg Lc)) as Lh.
    unfold claim_at. destruct (says c); [| |discriminate].
    + pose proof (fnonpos_correct prec K (value p) x HK Hx _ _ H Lh). apply log_upper; [exact Hl|exact Pv|lra].
    + pose proof (fnonneg_correct prec K (value p) x HK Hx _ _ H Lh). apply log_lower; [exact Hl|exact Pv|lra].
  - unfold far_value in H. unfold claim_at. destruct (says c); [| |].
    + destruct (fst (analyse prec K e)) as [f|]; [|discriminate]. specialize (V f eq_refl).
      apply Bool.andb_true_iff in H. destruct H as [H1 H2].
      set (g := [(mneg (scale_mono (depth c) (exponent c)), Range (ineg (iexp prec (iQ prec (ln_constant c)))))]) in *.
      assert (Hg : holds g x (- bound c x)).
      { exists (- exp (Q2R (ln_constant c))), 0. split; [apply ineg_correct, iexp_correct, iQ_correct|].
        split; [reflexivity|]. rewrite meval_mneg, bound_mono by exact Hl. unfold Rdiv. ring. }
      pose proof (fnonpos_correct prec K (value p) x HK Hx _ _ H1 (fadd_correct prec f g x _ _ V Hg)).
      pose proof (fnonpos_correct prec K (value p) x HK Hx _ _ H2
                    (fadd_correct prec (fneg prec f) g x _ _ (fneg_correct prec f x _ V) Hg)).
      apply Rabs_le. lra.
    + destruct (fst (analyse prec K e)); discriminate.
    + destruct (fst (analyse prec K e)) as [[|t f]|]; try discriminate. exact (V [] eq_refl).
Qed.

Lemma log_at_correct i x : within i x -> within (log_at i) (ln (eval e x)) /\ (log_at i <> I.nai -> 0 < eval e x).
Proof.
  intros Hi. unfold log_at.
  assert (D : within (let v := enclose_at prec i e in if ipos v then iln prec v else I.nai) (ln (eval e x)) /\
              ((let v := enclose_at prec i e in if ipos v then iln prec v else I.nai) <> I.nai -> 0 < eval e x)).
  { pose proof (enclose_at_correct prec i x e Hi) as E. cbv zeta. destruct (ipos (enclose_at prec i e)) eqn:P.
    - split; [now apply iln_correct|]. intros _. now apply (ipos_correct _ _ P).
    - split; [apply within_nai|]. intros N. now contradiction N. }
  destruct e; try exact D. cbn [eval]. rewrite ln_exp.
  split; [now apply enclose_at_correct|]. intros _. apply exp_pos.
Qed.

Lemma nai_not_small a b : inonpos (isub prec (iadd prec I.nai a) b) = false /\ inonneg (isub prec (iadd prec I.nai a) b) = false.
Proof. split; destruct a, b; reflexivity. Qed.

Lemma near_correct i x : within i x -> near i = true -> claim_at x.
Proof.
  intros Hi. unfold near. set (K := logs_of prec i 6).
  assert (HK : forall j, within (known K j) (logs j x)) by (intros j; now apply logs_of_correct).
  intros H. apply Bool.andb_true_iff in H. destruct H as [Hk H].
  pose proof (kpos_correct K x HK _ Hk) as Hl.
  pose proof (kdot_correct prec K x HK (scale_mono (depth c) (exponent c)) 0) as S.
  set (s := kdot prec K (scale_mono (depth c) (exponent c)) 0) in *.
  destruct (log_at_correct i x Hi) as [W P].
  pose proof (iQ_correct prec (ln_constant c)) as C.
  assert (D : within (isub prec (iadd prec (log_at i) s) (iQ prec (ln_constant c)))
                (ln (eval e x) + mdot (scale_mono (depth c) (exponent c)) 0 x - Q2R (ln_constant c))).
  { apply isub_correct; [now apply iadd_correct|exact C]. }
  assert (Pos : inonpos (isub prec (iadd prec (log_at i) s) (iQ prec (ln_constant c))) = true \/
                inonneg (isub prec (iadd prec (log_at i) s) (iQ prec (ln_constant c))) = true -> 0 < eval e x).
  { intros Q. apply P. intros N. rewrite N in Q. destruct (nai_not_small s (iQ prec (ln_constant c))) as [N1 N2].
    rewrite N1, N2 in Q. destruct Q; discriminate. }
  unfold claim_at. destruct (says c).
  - apply Bool.orb_true_iff in H. destruct H as [H|H].
    + apply log_upper; [exact Hl|apply Pos; now left|now apply (inonpos_correct _ _ H)].
    + pose proof (enclose_at_correct prec _ _ e Hi) as E.
      assert (Q : Rabs (eval e x) * exp (mdot (scale_mono (depth c) (exponent c)) 0 x)
                  - exp (Q2R (ln_constant c)) <= 0).
      { apply (inonpos_correct _ _ H). apply isub_correct; [|now apply iexp_correct].
        apply imul_correct; [now apply iabs_correct|now apply iexp_correct]. }
      rewrite bound_mono by exact Hl. fold (meval (scale_mono (depth c) (exponent c)) x) in Q.
      pose proof (meval_pos (scale_mono (depth c) (exponent c)) x) as Pm.
      apply (Rmult_le_reg_r (meval (scale_mono (depth c) (exponent c)) x)); [exact Pm|].
      unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - apply log_lower; [exact Hl|apply Pos; now right|now apply (inonneg_correct _ _ H)].
  - apply (izero_correct _ _ H). now apply enclose_at_correct.
Qed.

Lemma near_all_correct fuel a b z : near_all fuel a b = true -> (a <= z < b)%Z -> claim_at (IZR z).
Proof.
  revert a b. induction fuel as [|fuel IH]; intros a b H Hz; cbn [near_all] in H;
    apply Bool.orb_true_iff in H; (destruct H as [H|H]; [apply Bool.orb_true_iff in H; destruct H as [H|H]|]).
  - apply Z.leb_le in H. lia.
  - apply (near_correct _ (IZR z)) in H; [exact H|]. apply within_between with (IZR a) (IZR (b - 1)).
    + apply ijoin_l, iZ_correct.
    + apply ijoin_r, iZ_correct.
    + split; apply IZR_le; lia.
  - discriminate.
  - apply Z.leb_le in H. lia.
  - apply (near_correct _ (IZR z)) in H; [exact H|]. apply within_between with (IZR a) (IZR (b - 1)).
    + apply ijoin_l, iZ_correct.
    + apply ijoin_r, iZ_correct.
    + split; apply IZR_le; lia.
  - apply Bool.andb_true_iff in H. destruct H as [H H2]. apply Bool.andb_true_iff in H. destruct H as [_ H1].
    destruct (Z_lt_le_dec z ((a + b) / 2)) as [h|h]; [apply (IH _ _ H1)|apply (IH _ _ H2)]; lia.
Qed.

Lemma claim_at_all y z : far (At z) = true -> near_all 64 y z = true ->
  forall t, IZR y <= INR t -> claim_at (INR t).
Proof.
  intros F N t Ht. destruct (Rle_or_lt (IZR z) (INR t)) as [h|h]; [now apply (far_correct (At z))|].
  rewrite INR_IZR_INZ in *. apply le_IZR in Ht. apply lt_IZR in h. apply (near_all_correct 64 y z); [exact N|lia].
Qed.

Lemma search_correct n y z : from c = At y -> search z n = true -> forall t, IZR y <= INR t -> claim_at (INR t).
Proof.
  intros Fr. revert z. induction n as [|n IH]; intros z H t Ht; cbn [search] in H; [discriminate|].
  destruct (far (At z)) eqn:F; [|now apply (IH (4 * z)%Z)]. rewrite Fr in H. now apply (claim_at_all y z F H).
Qed.

Theorem check_auto_correct (b : nat -> R) : (forall t, b t = eval e (INR t)) -> check_auto = true -> certifies c b.
Proof.
  intros Hb H t Ht. rewrite Hb. change (claim_at (INR t)). unfold check_auto in H. destruct (from c) as [z|q] eqn:Fr.
  - now apply (search_correct 8 z z Fr H).
  - now apply (far_correct (Exp_of q)).
Qed.

Theorem check_correct p (b : nat -> R) : (forall t, b t = eval e (INR t)) -> check (check_place p) = true ->
  certifies c b.
Proof.
  intros Hb H t Ht. unfold check, check_place in H. apply Bool.andb_true_iff in H. destruct H as [F N].
  rewrite Hb. change (claim_at (INR t)). destruct (from c) as [z|q] eqn:Fr.
  - destruct p as [y|q]; [|discriminate]. now apply (claim_at_all z y F N).
  - now apply (far_correct (Exp_of q)).
Qed.
End Checker.

(* ---------------------------------------------------------------------------------------------------- the verdict *)
(* the scale is defined from the start on, and its exponent is on the right side of 1 *)
Definition proves_convergence (c : certificate) : bool :=
  match says c with
  | Upper => negb (Qle_bool (exponent c) 1) && kpos (known_at (F.PtoP 53) (from c)) (depth c)
  | Finite_support => true
  | Lower => false
  end.

Definition proves_divergence (c : certificate) : bool :=
  match says c with
  | Lower => Qle_bool (exponent c) 1 && kpos (known_at (F.PtoP 53) (from c)) (depth c)
  | _ => false
  end.

Lemma known_pos p m : kpos (known_at (F.PtoP 53) p) m = true -> 0 < logs m (value p).
Proof. intros H. apply (ipos_correct _ _ H). apply known_at_correct. Qed.

Theorem certified_convergence c b : certifies c b -> proves_convergence c = true -> ex_series b.
Proof.
  unfold certifies, proves_convergence. intros H V. destruct (says c) eqn:S; [|discriminate|].
  - apply Bool.andb_true_iff in V. destruct V as [V1 V2].
    apply (upper_converges b (exp (Q2R (ln_constant c))) (depth c) (Q2R (exponent c)) (value (from c))).
    + apply Bool.negb_true_iff in V1. destruct (Qlt_le_dec 1 (exponent c)) as [h|h].
      * apply Qlt_Rlt in h. unfold Q2R in h at 1. simpl in h. lra.
      * apply Qle_bool_iff in h. congruence.
    + now apply known_pos.
    + exact H.
  - destruct (exists_INR_above (value (from c))) as [N HN]. apply (ex_series_finite b N).
    intros t Ht. apply H. apply Rle_trans with (1 := HN). now apply le_INR.
Qed.

Theorem certified_divergence c b : certifies c b -> proves_divergence c = true -> ~ ex_series b.
Proof.
  unfold certifies, proves_divergence. intros H V. destruct (says c) eqn:S; [discriminate| |discriminate].
  apply Bool.andb_true_iff in V. destruct V as [V1 V2].
  apply (lower_diverges b (exp (Q2R (ln_constant c))) (depth c) (Q2R (exponent c)) (value (from c))).
  - apply exp_pos.
  - apply Qle_bool_iff in V1. apply Qle_Rle in V1. unfold Q2R in V1 at 2. simpl in V1. lra.
  - now apply known_pos.
  - exact H.
Qed.
