(* Logarithm, power, exponential, absolute value and waves of an expansion, valid for every x >= X.

   Each takes out the first term c*m, so that the value is c*m*(1 + d) with a small d, and expands 1 + d to second order
   with the remainder as an interval. *)
From Coq Require Import Reals ZArith QArith Qreals List Psatz Lia.
From Farfield Require Import Logarithms Ladder Numbers Monomials Taylor Symbols Expansions.
Import ListNotations.
Open Scope R_scope.

(* proofs below go by the inclusion of each operation, never by its definition *)
Local Opaque within iZ iadd isub imul ineg iinv isqr iabs iexp iln icos isin ipi ifrom0 iabove imeet iunit
  Expansions.fadd Expansions.fscale Expansions.fneg Expansions.fmul Expansions.tidy Expansions.square_term constant.

Section Functions.
Variables (prec : I.F.precision) (K : list I.type).

Notation range := (range prec K).
Notation enclose := (enclose prec K).
Notation fadd := (fadd prec).
Notation fmul := (fmul prec K).
Notation tidy := (tidy prec K).
Notation fneg := (fneg prec).
Notation fscale := (fscale prec).
Notation square_term := (square_term prec K).
Notation one := (constant (Exact 1)).

(* an iterated logarithm that is known to be positive *)
Definition level (i : nat) : option expansion := if kpos K i then Some [(munit (S i), Exact 1)] else None.

(* the logarithm of a monomial, logarithms counted from i *)
Fixpoint log_mono (a : mono) (i : nat) : option expansion :=
  match a with
  | [] => Some []
  | q :: a' =>
      if Qeq_bool q 0 then log_mono a' (S i)
      else match level i, log_mono a' (S i) with
           | Some f, Some g => Some (fadd (fscale [] (Exact q) f) g)
           | _, _ => None
           end
  end.

(* f = c * a * (1 + rest) *)
Definition rest (a : mono) (c : coefficient) (g : expansion) : expansion := fscale (mneg a) (cinv prec c) g.

Definition log_constant (c : coefficient) : expansion :=
  if cone c then []
  else let i := iln prec (to_I prec c) in
       match as_root c with
       | Some m => match log_of_root m with Some s => constant (made s i) | None => [([], Range i)] end
       | None => [([], Range i)]
       end.

Definition flog (f : expansion) : option expansion :=
  match f with
  | [] => None
  | (a, c) :: g =>
      let d := rest a c g in
      let J := enclose d in
      if cpos prec c && ipos (iadd prec (iZ prec 1) J) then
        match log_mono a 0 with
        | None => None
        | Some l =>
            let theta := ineg (iinv prec (imul prec (iZ prec 2) (isqr prec (iadd prec (iZ prec 1) (ifrom0 prec J))))) in
            let log_1_plus_d := if I.bounded J then fadd d (square_term theta d)
                                else [([], Range (iln prec (iadd prec (iZ prec 1) J)))] in
            Some (tidy (fadd l (fadd (log_constant c) log_1_plus_d)))
        end
      else None
  end.

Definition power_constant (c : coefficient) (q : Q) : coefficient :=
  if cone c then Exact 1
  else if Qeq_bool q (-1) then cinv prec c
  else let i := iexp prec (imul prec (iQ prec q) (iln prec (to_I prec c))) in
       match as_root c with Some m => made (symbol_of 1 (root_power q m)) i | None => Range i end.

Definition exp_constant (c : coefficient) : coefficient :=
  if czero c then Exact 1
  else let i := iexp prec (to_I prec c) in
       match c with
       | Symbol s _ => match exp_of_symbol s with Some m => made (symbol_of 1 m) i | None => Range i end
       | _ => Range i
       end.

Definition fpow (f : expansion) (q : Q) : option expansion :=
  match f with
  | [] => None
  | (a, c) :: g =>
      let d := rest a c g in
      let J := enclose d in
      if cpos prec c && ipos (iadd prec (iZ prec 1) J) then
        let base := iadd prec (iZ prec 1) (ifrom0 prec J) in
        let theta := imul prec (iQ prec (q * (q - 1) / 2)) (iexp prec (imul prec (iQ prec (q - 2)) (iln prec base))) in
        let power_1_plus_d := if I.bounded J then fadd one (fadd (fscale [] (Exact q) d) (square_term theta d))
                              else [([], Range (iexp prec (imul prec (iQ prec q) (iln prec (iadd prec (iZ prec 1) J)))))] in
        Some (tidy (fscale (mscale q a) (power_constant c q) power_1_plus_d))
      else None
  end.

Definition finv (f : expansion) : option expansion :=
  match f with
  | [] => None
  | (_, c) :: _ => if cpos prec c then fpow f (-1) else option_map fneg (fpow (fneg f) (-1))
  end.

(* exp (m + k + rest): what a monomial can hold, a constant, and the remaining terms *)
Fixpoint split_exp (f : expansion) : mono * coefficient * expansion :=
  match f with
  | [] => ([], Exact 0, [])
  | (a, c) :: g =>
      let '(m, k, r) := split_exp g in
      if mzero a then (m, cadd prec c k, r)
      else match c, unit_index a with
           | Exact q, Some (S i) =>
               if kpos K i then (madd (mscale q (munit i)) m, k, r) else (m, k, (a, c) :: r)
           | _, _ => (m, k, (a, c) :: r)
           end
  end.

(* r = q * logs i + (something of the sign of q): what grows beyond every multiple of a logarithm gives a power *)
Definition pull (r : expansion) (i : nat) : option (Q * I.type) :=
  if kpos K i then
    let g := enclose (fscale (mneg (munit (S i))) (Exact 1) r) in
    if ipos g || ineg_strict g then
      let q := end_near_0 g in Some (q, imul prec (mrange prec K (munit (S i))) (isub prec g (iQ prec q)))
    else None
  else None.

Fixpoint exp_growing (m : mono) (c : coefficient) (r : expansion) (levels : list nat) : expansion :=
  match levels with
  | [] => [(m, cmul prec c (Range (iexp prec (enclose r))))]
  | i :: rest => match pull r i with
                 | Some (q, j) => [(madd (mscale q (munit i)) m, cmul prec c (Range (iexp prec j)))]
                 | None => exp_growing m c r rest
                 end
  end.

Definition fexp (f : expansion) : expansion :=
  let '(m, k, r) := split_exp f in
  let c := exp_constant k in
  if first_growing r || negb (I.bounded (enclose r)) then exp_growing m c r [0%nat; 1%nat; 2%nat]
  else
    let theta := imul prec (iexp prec (ifrom0 prec (enclose r))) (iQ prec (1 # 2)) in
    tidy (fscale m c (fadd one (fadd r (square_term theta r)))).

Definition fabs (f : expansion) : expansion :=
  if fnonneg prec K f then f else if fnonpos prec K f then fneg f
  else match f with [] => [] | (a, _) :: _ => [(a, Range (iabs (lead_range prec K f)))] end.

Fixpoint fpow_nat (f : expansion) (n : nat) : expansion :=
  match n with O => one | S O => f | S m => fmul f (fpow_nat f m) end.

(* a wave: its Taylor polynomial where the argument tends to 0, otherwise [-1, 1] or better *)
Definition tends_to_0 (f : expansion) : bool :=
  match f with [] => true | (a, _) :: _ => match msign a with Lt => true | _ => false end end.

Definition half_square (fn : I.type -> I.type) (g : expansion) : expansion :=
  square_term (imul prec (ineg (fn (ifrom0 prec (enclose g)))) (iQ prec (1 # 2))) g.

Definition wave (fn : I.type -> I.type) (start : expansion -> expansion) (f : option expansion) : expansion :=
  match f with
  | Some g => if tends_to_0 g then fadd (start g) (half_square fn g)
              else if first_growing g then [([], Range (iunit prec))]
              else [([], Range (imeet (iunit prec) (fn (enclose g))))]
  | None => [([], Range (iunit prec))]
  end.

(* ----------------------------------------------------------------------------------------------------- correctness *)
Variables (X x : R).
Hypothesis HK : forall i, within (known K i) (logs i X).
Hypothesis Hx : X <= x.

Lemma holds_c_1 : holds_c (Exact 1) 1.
Proof. simpl. unfold Q2R. simpl. lra. Qed.

Lemma one_correct : holds one x 1.
Proof. apply constant_correct, holds_c_1. Qed.

Lemma fscale_exact q f v : holds f x v -> holds (fscale [] (Exact q) f) x (Q2R q * v).
Proof.
  intros H. replace (Q2R q * v) with (Q2R q * meval [] x * v) by (rewrite meval_nil; ring).
  now apply fscale_correct.
Qed.

Lemma tidy_correct f v : holds f x v -> holds (tidy f) x v.
Proof. exact (Expansions.tidy_correct prec K X x HK Hx f v). Qed.

Lemma level_correct i f : level i = Some f -> holds f x (logs i x).
Proof.
  unfold level. destruct (kpos K i) eqn:P; [|discriminate]. intros H. injection H as <-.
  pose proof (kpos_far K X x HK Hx i P) as Q. exists 1, 0. split; [exact holds_c_1|]. split; [reflexivity|].
  rewrite meval_munit by exact Q. ring.
Qed.

Lemma log_mono_correct a i f : log_mono a i = Some f -> holds f x (mdot a i x).
Proof.
  revert i f. induction a as [|q a IH]; intros i f H; cbn [log_mono mdot] in *.
  - injection H as <-. reflexivity.
  - destruct (Qeq_bool q 0) eqn:E.
    + rewrite (Q2R_zero_of q E), Rmult_0_l, Rplus_0_l. now apply IH.
    + destruct (level i) as [g|] eqn:L; [|discriminate]. destruct (log_mono a (S i)) as [h|] eqn:M; [|discriminate].
      injection H as <-. apply fadd_correct; [|now apply IH]. apply fscale_exact. now apply level_correct.
Qed.

Lemma factor a c g v : holds ((a, c) :: g) x v -> cpos prec c = true ->
  exists k d, holds_c c k /\ 0 < k /\ holds (rest a c g) x d /\ v = k * meval a x * (1 + d).
Proof.
  intros [k [w [Hc [Hg ->]]]] P. pose proof (cpos_correct prec c k P Hc) as Pk. pose proof (meval_pos a x) as Pm.
  exists k, (/ k * meval (mneg a) x * w). split; [exact Hc|]. split; [exact Pk|]. split.
  - apply fscale_correct; [|exact Hg]. apply cinv_correct; [exact Hc|lra].
  - rewrite meval_mneg. field. lra.
Qed.

Lemma within_one_plus J d z : within J d -> between0 d z ->
  within (iadd prec (iZ prec 1) (ifrom0 prec J)) (1 + z).
Proof.
  intros HJ Hz. apply iadd_correct; [apply iZ_correct|]. apply ifrom0_correct with d; [exact HJ|]. exact Hz.
Qed.

Lemma log_constant_correct c k : holds_c c k -> 0 < k -> holds (log_constant c) x (ln k).
Proof.
  intros Hc Pk. unfold log_constant. destruct (cone c) eqn:C1; [rewrite (cone_correct c k C1 Hc), ln_1; reflexivity|].
  pose proof (iln_correct prec _ _ (to_I_correct prec c k Hc)) as W.
  assert (G : holds [([], Range (iln prec (to_I prec c)))] x (ln k)).
  { exists (ln k), 0. split; [exact W|]. split; [reflexivity|]. rewrite meval_nil. ring. }
  destruct (as_root c) as [m|] eqn:M; [|exact G]. destruct (log_of_root m) as [s|] eqn:S; [|exact G].
  apply constant_correct. apply made_correct; [|exact W].
  rewrite (log_of_root_correct m s S), (as_root_correct c m k M Hc). unfold root_value. apply ln_exp.
Qed.

Lemma exp_constant_correct c k : holds_c c k -> holds_c (exp_constant c) (exp k).
Proof.
  intros Hc. unfold exp_constant. destruct (czero c) eqn:Z; [rewrite (czero_correct c k Z Hc), exp_0; exact holds_c_1|].
  pose proof (iexp_correct prec _ _ (to_I_correct prec c k Hc)) as W. destruct c as [q|s i|i]; [exact W| |exact W].
  destruct (exp_of_symbol s) as [m|] eqn:M; [|exact W]. destruct Hc as [E _]. apply made_correct; [|exact W].
  rewrite symbol_of_correct, (exp_of_symbol_correct s m M), E. unfold Q2R. simpl. lra.
Qed.

Lemma flog_correct f g v : flog f = Some g -> holds f x v -> 0 < v /\ holds g x (ln v).
Proof.
  destruct f as [|[a c] r]; [discriminate|]. unfold flog. intros H Hf.
  destruct (cpos prec c && ipos (iadd prec (iZ prec 1) (enclose (rest a c r)))) eqn:B; [|discriminate].
  apply Bool.andb_true_iff in B. destruct B as [Bc BJ].
  destruct (log_mono a 0) as [l|] eqn:L; [|discriminate]. injection H as <-.
  destruct (factor a c r v Hf Bc) as [k [d [Hc [Pk [Hd ->]]]]].
  pose proof (enclose_correct prec K X x HK Hx _ _ Hd) as HJ. set (J := enclose (rest a c r)) in *.
  assert (P1 : 0 < 1 + d).
  { apply (ipos_correct _ _ BJ). apply iadd_correct; [apply iZ_correct|exact HJ]. }
  pose proof (meval_pos a x) as Pm.
  assert (Pkm : 0 < k * meval a x) by now apply Rmult_lt_0_compat.
  split; [now apply Rmult_lt_0_compat|].
  rewrite ln_mult, ln_mult by assumption. replace (ln (meval a x)) with (mdot a 0 x) by (unfold meval; now rewrite ln_exp).
  apply tidy_correct. rewrite (Rplus_comm (ln k)), Rplus_assoc.
  apply fadd_correct; [now apply log_mono_correct|]. apply fadd_correct.
  - now apply log_constant_correct.
  - destruct (I.bounded J).
    2:{ exists (ln (1 + d)), 0. split; [apply iln_correct, iadd_correct; [apply iZ_correct|exact HJ]|].
        split; [reflexivity|]. rewrite meval_nil. ring. }
    destruct (taylor_ln d ltac:(lra)) as [z [Bz ->]].
    apply fadd_correct; [exact Hd|]. apply (square_term_correct prec K X x HK Hx); [|exact Hd].
    apply ineg_correct, iinv_correct, imul_correct; [apply iZ_correct|]. apply isqr_correct.
    now apply within_one_plus with d.
Qed.

Lemma power_constant_correct c q k : holds_c c k -> 0 < k -> holds_c (power_constant c q) (Rpower k (Q2R q)).
Proof.
  intros Hc Pk. unfold power_constant. destruct (cone c) eqn:C1.
  - rewrite (cone_correct c k C1 Hc). unfold Rpower. rewrite ln_1, Rmult_0_r, exp_0. exact holds_c_1.
  - destruct (Qeq_bool q (-1)) eqn:E.
    + apply Qeq_bool_eq in E. apply Qeq_eqR in E. replace (Q2R q) with (-1) by (rewrite E; unfold Q2R; simpl; lra).
      rewrite Rpower_minus_1 by exact Pk. apply cinv_correct; [exact Hc|lra].
    + assert (W : within (iexp prec (imul prec (iQ prec q) (iln prec (to_I prec c)))) (Rpower k (Q2R q))).
      { apply iexp_correct, imul_correct; [apply iQ_correct|]. apply iln_correct. now apply to_I_correct. }
      destruct (as_root c) as [m|] eqn:M; [|exact W]. apply made_correct; [|exact W].
      rewrite symbol_of_correct, root_power_correct, <- (as_root_correct c m k M Hc). unfold Q2R at 2. simpl. lra.
Qed.

Lemma fpow_correct f q g v : fpow f q = Some g -> holds f x v -> 0 < v /\ holds g x (Rpower v (Q2R q)).
Proof.
  destruct f as [|[a c] r]; [discriminate|]. unfold fpow. intros H Hf.
  destruct (cpos prec c && ipos (iadd prec (iZ prec 1) (enclose (rest a c r)))) eqn:B; [|discriminate].
  apply Bool.andb_true_iff in B. destruct B as [Bc BJ]. injection H as <-.
  destruct (factor a c r v Hf Bc) as [k [d [Hc [Pk [Hd ->]]]]].
  pose proof (enclose_correct prec K X x HK Hx _ _ Hd) as HJ. set (J := enclose (rest a c r)) in *.
  assert (P1 : 0 < 1 + d).
  { apply (ipos_correct _ _ BJ). apply iadd_correct; [apply iZ_correct|exact HJ]. }
  pose proof (meval_pos a x) as Pm.
  assert (Pkm : 0 < k * meval a x) by now apply Rmult_lt_0_compat.
  split; [now apply Rmult_lt_0_compat|]. set (s := Q2R q).
  rewrite !Rpower_mult_distr || rewrite <- !Rpower_mult_distr by (try assumption; now apply Rmult_lt_0_compat).
  replace (Rpower (meval a x) s) with (meval (mscale q a) x)
    by (unfold meval, Rpower; rewrite ln_exp, mdot_mscale; reflexivity).
  apply tidy_correct. apply fscale_correct; [now apply power_constant_correct|].
  destruct (I.bounded J).
  2:{ exists (Rpower (1 + d) s), 0. split; [|split; [reflexivity|rewrite meval_nil; ring]].
      apply iexp_correct, imul_correct; [apply iQ_correct|]. apply iln_correct, iadd_correct; [apply iZ_correct|exact HJ]. }
  destruct (taylor_power s d ltac:(lra)) as [z [Bz ->]].
  rewrite Rplus_assoc. apply fadd_correct; [apply one_correct|].
  apply fadd_correct; [now apply fscale_exact|]. apply (square_term_correct prec K X x HK Hx); [|exact Hd].
  apply imul_correct.
  - replace (s * (s - 1) / 2) with (Q2R (q * (q - 1) / 2)); [apply iQ_correct|].
    unfold Qdiv. rewrite !Q2R_mult, Q2R_minus, Q2R_inv by discriminate. unfold s. unfold Q2R at 3 4. simpl. field.
  - apply iexp_correct, imul_correct.
    + replace (s - 2) with (Q2R (q - 2)) by (rewrite Q2R_minus; unfold s; unfold Q2R at 2; simpl; lra). apply iQ_correct.
    + apply iln_correct. now apply within_one_plus with d.
Qed.

Lemma finv_correct f g v : finv f = Some g -> holds f x v -> v <> 0 /\ holds g x (/ v).
Proof.
  intros H Hf. assert (Q : Q2R (-1) = -1) by (unfold Q2R; simpl; lra).
  destruct f as [|[a c] r]; [discriminate|]. unfold finv in H. destruct (cpos prec c).
  - destruct (fpow_correct _ _ _ _ H Hf) as [P G]. rewrite Q, Rpower_minus_1 in G by exact P. split; [lra|exact G].
  - destruct (fpow (fneg ((a, c) :: r)) (-1)) as [h|] eqn:E; [|discriminate]. simpl in H. injection H as <-.
    destruct (fpow_correct _ _ _ _ E (fneg_correct prec _ _ _ Hf)) as [P G].
    rewrite Q, Rpower_minus_1 in G by exact P. split; [lra|].
    replace (/ v) with (- / - v) by (field; lra). now apply fneg_correct.
Qed.

Lemma split_exp_correct f v m k r : split_exp f = (m, k, r) -> holds f x v ->
  exists c w, holds_c k c /\ holds r x w /\ v = mdot m 0 x + c + w.
Proof.
  revert v m k r. induction f as [|[a c] f IH]; intros v m k r E Hf; cbn [split_exp] in E.
  - injection E as <- <- <-. exists 0, 0. simpl in *. split; [unfold Q2R; simpl; lra|]. split; [reflexivity|lra].
  - destruct Hf as [l [w [Hc [Hf ->]]]]. destruct (split_exp f) as [[m0 k0] r0] eqn:Sp.
    destruct (IH w m0 k0 r0 eq_refl Hf) as [c0 [w0 [Hk [Hr ->]]]].
    destruct (mzero a) eqn:Z.
    { injection E as <- <- <-. exists (l + c0), w0. split; [now apply cadd_correct|]. split; [exact Hr|].
      unfold meval. rewrite (mdot_mzero a 0 x Z), exp_0. ring. }
    assert (Keep : (m0, k0, (a, c) :: r0) = (m, k, r) -> exists c' w', holds_c k c' /\ holds r x w' /\
                   l * meval a x + (mdot m0 0 x + c0 + w0) = mdot m 0 x + c' + w').
    { intros E'. injection E' as <- <- <-. exists c0, (l * meval a x + w0). split; [exact Hk|]. split; [|ring].
      exists l, w0. auto. }
    destruct c as [q|s i|i]; [|now apply Keep|now apply Keep].
    destruct (unit_index a) as [[|n]|] eqn:U; try (now apply Keep).
    destruct (kpos K n) eqn:P; [|now apply Keep].
    injection E as <- <- <-. exists c0, w0. split; [exact Hk|]. split; [exact Hr|].
    pose proof (kpos_far K X x HK Hx n P) as Pn.
    assert (M : meval a x = logs n x).
    { unfold meval. rewrite (mdot_unit_index a (S n) 0 x U). simpl. now apply exp_ln. }
    simpl in Hc. rewrite M, Hc, mdot_madd, mdot_mscale, mdot_munit. simpl. ring.
Qed.

Lemma pull_correct r i q j w : pull r i = Some (q, j) -> holds r x w ->
  exists y, within j y /\ w = Q2R q * logs i x + y.
Proof.
  unfold pull. destruct (kpos K i) eqn:P; [|discriminate]. intros E Hr.
  pose proof (kpos_far K X x HK Hx i P) as Pl. set (g := enclose (fscale (mneg (munit (S i))) (Exact 1) r)) in *.
  destruct (ipos g || ineg_strict g); [|discriminate]. injection E as <- <-.
  assert (G : within g (/ logs i x * w)).
  { apply (enclose_correct prec K X x HK Hx). rewrite <- (meval_munit i x Pl), <- meval_mneg.
    rewrite <- (Rmult_1_l (meval (mneg (munit (S i))) x)). apply fscale_correct; [exact holds_c_1|exact Hr]. }
  exists (logs i x * (/ logs i x * w - Q2R (end_near_0 g))). split; [|field; lra].
  apply imul_correct.
  - rewrite <- (meval_munit i x Pl) at 1. now apply mrange_correct with X.
  - apply isub_correct; [exact G|apply iQ_correct].
Qed.

Lemma exp_growing_correct m c r levels k w : holds_c c k -> holds r x w ->
  holds (exp_growing m c r levels) x (k * meval m x * exp w).
Proof.
  intros Hc Hr. induction levels as [|i l IH]; cbn [exp_growing].
  - exists (k * exp w), 0. split; [|split; [reflexivity|ring]]. apply cmul_correct; [exact Hc|].
    apply iexp_correct. now apply (enclose_correct prec K X x HK Hx).
  - destruct (pull r i) as [[q j]|] eqn:P; [|exact IH].
    destruct (pull_correct r i q j w P Hr) as [y [Hy ->]]. exists (k * exp y), 0.
    split; [apply cmul_correct; [exact Hc|now apply iexp_correct]|]. split; [reflexivity|].
    unfold meval. rewrite mdot_madd, mdot_mscale, mdot_munit, !exp_plus. simpl. ring.
Qed.

Lemma fexp_correct f v : holds f x v -> holds (fexp f) x (exp v).
Proof.
  intros Hf. unfold fexp. destruct (split_exp f) as [[m k] r] eqn:S.
  destruct (split_exp_correct f v m k r S Hf) as [c [w [Hk [Hr ->]]]].
  pose proof (exp_constant_correct k c Hk) as C. set (c' := exp_constant k) in *.
  pose proof (enclose_correct prec K X x HK Hx _ _ Hr) as HJ.
  rewrite !exp_plus. fold (meval m x). rewrite (Rmult_comm (meval m x)).
  destruct (first_growing r || negb (I.bounded (enclose r))); [now apply exp_growing_correct|].
  destruct (taylor_exp w) as [z [Bz ->]]. apply tidy_correct. rewrite Rplus_assoc.
  apply fscale_correct; [exact C|]. apply fadd_correct; [apply one_correct|]. apply fadd_correct; [exact Hr|].
  apply (square_term_correct prec K X x HK Hx); [|exact Hr]. unfold Rdiv. apply imul_correct.
  - apply iexp_correct. apply ifrom0_correct with w; [exact HJ|exact Bz].
  - replace (/ 2) with (Q2R (1 # 2)) by (unfold Q2R; simpl; lra). apply iQ_correct.
Qed.

Lemma fabs_correct f v : holds f x v -> holds (fabs f) x (Rabs v).
Proof.
  intros Hf. unfold fabs. destruct (fnonneg prec K f) eqn:S1.
  - pose proof (fnonneg_correct prec K X x HK Hx f v S1 Hf). rewrite Rabs_right by lra. exact Hf.
  - destruct (fnonpos prec K f) eqn:S2.
    + pose proof (fnonpos_correct prec K X x HK Hx f v S2 Hf). rewrite Rabs_left1 by lra. now apply fneg_correct.
    + destruct f as [|[a c] f]; [simpl in *; rewrite Hf; apply Rabs_R0|].
      destruct (lead_range_correct prec K X x HK Hx a c f v Hf) as [g [Hg ->]]. exists (Rabs g), 0.
      split; [now apply iabs_correct|]. split; [reflexivity|]. pose proof (meval_pos a x).
      rewrite Rabs_mult, (Rabs_right (meval a x)) by lra. ring.
Qed.

Lemma fpow_nat_correct f n v : holds f x v -> holds (fpow_nat f n) x (v ^ n).
Proof.
  intros Hf. induction n as [|[|n] IH]; [apply one_correct|simpl; rewrite Rmult_1_r; exact Hf|].
  change (fpow_nat f (S (S n))) with (fmul f (fpow_nat f (S n))). change (v ^ S (S n)) with (v * v ^ S n).
  now apply (fmul_correct prec K X x HK Hx).
Qed.

Lemma wave_correct (fn : I.type -> I.type) (fr : R -> R) start (st : R -> R) f v :
  (forall i y, within i y -> within (fn i) (fr y)) -> (forall y, -1 <= fr y <= 1) ->
  (forall g w, holds g x w -> holds (start g) x (st w)) ->
  (forall d, exists z, between0 d z /\ fr d = st d + - fr z / 2 * (d * d)) ->
  (forall g, f = Some g -> holds g x v) -> holds (wave fn start f) x (fr v).
Proof.
  intros Hfn Hb Hst Ht Hf. assert (U : holds [([], Range (iunit prec))] x (fr v)).
  { exists (fr v), 0. split; [apply iunit_correct, Hb|]. split; [reflexivity|]. rewrite meval_nil. ring. }
  unfold wave. destruct f as [g|]; [|exact U]. specialize (Hf g eq_refl).
  pose proof (enclose_correct prec K X x HK Hx _ _ Hf) as HJ. destruct (tends_to_0 g).
  - destruct (Ht v) as [z [Bz ->]]. apply fadd_correct; [now apply Hst|]. unfold half_square.
    apply (square_term_correct prec K X x HK Hx); [|exact Hf]. unfold Rdiv. apply imul_correct.
    + apply ineg_correct, Hfn. apply ifrom0_correct with v; [exact HJ|exact Bz].
    + replace (/ 2) with (Q2R (1 # 2)) by (unfold Q2R; simpl; lra). apply iQ_correct.
  - destruct (first_growing g); [exact U|].
    exists (fr v), 0. split; [|split; [reflexivity|rewrite meval_nil; ring]].
    apply imeet_correct; [apply iunit_correct, Hb|]. now apply Hfn.
Qed.

End Functions.
