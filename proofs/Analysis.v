(* The expansion of a formula, and of its logarithm, valid for every x >= X.

   `analyse` walks over a formula once. It returns an expansion of the value and, on demand, one of the logarithm of the
   value (with the fact that the value is positive). Products, quotients, powers and exponentials have their logarithm
   taken apart before anything is expanded, so that nothing is lost by cancellation. *)
From Coq Require Import Reals ZArith QArith Qreals List Psatz Lia.
From Farfield Require Import Logarithms Ladder Numbers Monomials Taylor Expansions Functions Formula.
Import ListNotations.
Open Scope R_scope.

(* proofs below go by the inclusion of each operation, never by its definition *)
Local Opaque within iZ iadd isub imul ineg iinv isqr iabs iexp iln icos isin ipi ifrom0 iabove imeet iunit
  Expansions.fadd Expansions.fscale Expansions.fneg Expansions.fmul Expansions.tidy Expansions.square_term constant.

Section Walk.
Variables (prec : I.F.precision) (K : list I.type).

Notation fadd := (fadd prec).
Notation fmul := (fmul prec K).
Notation tidy := (tidy prec K).
Notation fneg := (fneg prec).
Notation fscale := (fscale prec).
Notation one := (constant (Exact 1)).
Notation level := (level K).
Notation flog := (flog prec K).
Notation fpow := (fpow prec K).
Notation finv := (finv prec K).
Notation fexp := (fexp prec K).
Notation fabs := (fabs prec K).
Notation fpow_nat := (fpow_nat prec K).
Notation wave := (wave prec K).

Definition result : Type := (option expansion * (unit -> option expansion))%type.

Definition bind2 (f g : option expansion) (op : expansion -> expansion -> option expansion) : option expansion :=
  match f, g with Some a, Some b => op a b | _, _ => None end.
Definition bind1 (f : option expansion) (op : expansion -> option expansion) : option expansion :=
  match f with Some a => op a | None => None end.
Definition orelse (f : option expansion) (g : unit -> option expansion) : option expansion :=
  match f with Some a => Some a | None => g tt end.

(* a value whose logarithm is found from the value *)
Definition plain (v : option expansion) : result := (v, fun _ => bind1 v flog).

(* exact rational value of a constant expansion *)
Definition rational (f : expansion) : option Q :=
  match f with [] => Some 0%Q | [([], Exact q)] => Some q | _ => None end.

Fixpoint analyse (e : formula) : result :=
  match e with
  | Dist => plain (level 0)
  | Int z => plain (Some (constant (Exact (inject_Z z))))
  | Rat q => plain (Some (constant (Exact (Qred q))))
  | Pi => plain (Some (constant (Range (ipi prec))))
  | Add a b => plain (bind2 (fst (analyse a)) (fst (analyse b)) (fun f g => Some (tidy (fadd f g))))
  | Sub a b => plain (bind2 (fst (analyse a)) (fst (analyse b)) (fun f g => Some (tidy (fadd f (fneg g)))))
  | Neg a => plain (bind1 (fst (analyse a)) (fun f => Some (fneg f)))
  | Mul a b =>
      let ra := analyse a in let rb := analyse b in
      let v := bind2 (fst ra) (fst rb) (fun f g => Some (fmul f g)) in
      (v, fun _ => orelse (bind2 (snd ra tt) (snd rb tt) (fun f g => Some (tidy (fadd f g)))) (fun _ => bind1 v flog))
  | Div a b =>
      let ra := analyse a in let rb := analyse b in
      let v := bind2 (fst ra) (fst rb) (fun f g => bind1 (finv g) (fun h => Some (fmul f h))) in
      (v, fun _ => orelse (bind2 (snd ra tt) (snd rb tt) (fun f g => Some (tidy (fadd f (fneg g)))))
                          (fun _ => bind1 v flog))
  | Inv a =>
      let ra := analyse a in
      let v := bind1 (fst ra) finv in
      (v, fun _ => orelse (bind1 (snd ra tt) (fun f => Some (fneg f))) (fun _ => bind1 v flog))
  | Exp a => let ra := analyse a in (bind1 (fst ra) (fun f => Some (fexp f)), fun _ => fst ra)
  | Log a => plain (snd (analyse a) tt)
  | Sqrt a =>
      let ra := analyse a in
      (bind1 (fst ra) (fun f => fpow f (1 # 2)), fun _ => bind1 (snd ra tt) (fun f => Some (fscale [] (Exact (1 # 2)) f)))
  | Pow a n =>
      let ra := analyse a in
      let v := bind1 (fst ra) (fun f => if Nat.leb n 8 then Some (fpow_nat f n)
                                        else fpow f (inject_Z (Z.of_nat n))) in
      (v, fun _ => orelse (bind1 (snd ra tt) (fun f => Some (fscale [] (Exact (inject_Z (Z.of_nat n))) f)))
                          (fun _ => bind1 v flog))
  | Real_pow a b | Power a b =>
      let ra := analyse a in let rb := analyse b in
      let l := fun _ : unit => bind2 (fst rb) (snd ra tt) (fun f g => Some (fmul f g)) in
      (match bind1 (fst rb) (fun f => match rational f with Some q => bind1 (fst ra) (fun g => fpow g q) | None => None end)
       with Some f => Some f | None => bind1 (l tt) (fun f => Some (fexp f)) end, l)
  | Cos a => plain (Some (wave (icos prec) (fun _ => one) (fst (analyse a))))
  | Sin a => plain (Some (wave (isin prec) (fun g => g) (fst (analyse a))))
  | Abs a => plain (bind1 (fst (analyse a)) (fun f => Some (fabs f)))
  | Floor a => plain (bind1 (fst (analyse a)) (fun f => Some (fadd f [([], Range (ifrom0 prec (iZ prec (-1))))])))
  | Min a b =>
      plain (bind2 (fst (analyse a)) (fst (analyse b))
        (fun f g => let d := fadd f (fneg g) in
                    if fnonpos prec K d then Some f else if fnonneg prec K d then Some g else None))
  | Max a b =>
      plain (bind2 (fst (analyse a)) (fst (analyse b))
        (fun f g => let d := fadd f (fneg g) in
                    if fnonpos prec K d then Some g else if fnonneg prec K d then Some f else None))
  | If_lt a b c d =>
      match bind2 (fst (analyse a)) (fst (analyse b)) (fun f g => Some (fadd f (fneg g))) with
      | None => (None, fun _ => None)
      | Some s => if fneg_strict prec K s then analyse c else if fnonneg prec K s then analyse d
                  else (None, fun _ => None)
      end
  | If_le a b c d =>
      match bind2 (fst (analyse a)) (fst (analyse b)) (fun f g => Some (fadd f (fneg g))) with
      | None => (None, fun _ => None)
      | Some s => if fnonpos prec K s then analyse c else if fpos prec K s then analyse d
                  else (None, fun _ => None)
      end
  end.

(* ----------------------------------------------------------------------------------------------------- correctness *)
Variables (X x : R).
Hypothesis HK : forall i, within (known K i) (logs i X).
Hypothesis Hx : X <= x.

Let tidy_correct := Expansions.tidy_correct prec K X x HK Hx.
Let level_correct := Functions.level_correct K X x HK Hx.
Let flog_correct := Functions.flog_correct prec K X x HK Hx.
Let fpow_correct := Functions.fpow_correct prec K X x HK Hx.
Let finv_correct := Functions.finv_correct prec K X x HK Hx.
Let fexp_correct := Functions.fexp_correct prec K X x HK Hx.
Let fabs_correct := Functions.fabs_correct prec K X x HK Hx.
Let fpow_nat_correct := Functions.fpow_nat_correct prec K X x HK Hx.
Let wave_correct := Functions.wave_correct prec K X x HK Hx.
Let one_correct := Functions.one_correct x.
Let fscale_exact := Functions.fscale_exact prec x.

Lemma rational_correct f q v : rational f = Some q -> holds f x v -> v = Q2R q.
Proof.
  destruct f as [|[[|a0 a] c] [|t g]]; simpl; intros H Hf; try discriminate; try (destruct c; discriminate).
  - injection H as <-. rewrite Hf. unfold Q2R. simpl. lra.
  - destruct c; try discriminate. injection H as <-. destruct Hf as [k [w [-> [-> ->]]]]. rewrite meval_nil. ring.
Qed.

(* what a result means *)
Definition sound (r : result) (v : R) : Prop :=
  (forall f, fst r = Some f -> holds f x v) /\ (forall f, snd r tt = Some f -> 0 < v /\ holds f x (ln v)).

Lemma plain_sound o v : (forall f, o = Some f -> holds f x v) -> sound (plain o) v.
Proof.
  intros H. split; [exact H|]. intros f. simpl. destruct o as [g|]; [|discriminate]. simpl. intros E.
  apply (flog_correct g f v E). now apply H.
Qed.

Lemma orelse_sound o p v : (forall f, o = Some f -> 0 < v /\ holds f x (ln v)) ->
  (forall f, p = Some f -> holds f x v) ->
  forall f, orelse o (fun _ => bind1 p flog) = Some f -> 0 < v /\ holds f x (ln v).
Proof.
  intros H1 H2 f. destruct o as [g|]; simpl; [intros E; injection E as <-; now apply H1|].
  destruct p as [g|]; [|discriminate]. simpl. intros E. apply (flog_correct g f v E). now apply H2.
Qed.

(* both kinds of real power, where the base is positive *)
Lemma power_sound ra rb a b : sound ra a -> sound rb b ->
  let l := fun _ : unit => bind2 (fst rb) (snd ra tt) (fun f g => Some (fmul f g)) in
  let v := match bind1 (fst rb) (fun f => match rational f with Some q => bind1 (fst ra) (fun g => fpow g q) | None => None end)
           with Some f => Some f | None => bind1 (l tt) (fun f => Some (fexp f)) end in
  (forall f, v = Some f -> 0 < a /\ holds f x (Rpower a b)) /\
  (forall f, l tt = Some f -> 0 < a /\ 0 < Rpower a b /\ holds f x (ln (Rpower a b))).
Proof.
  intros [Ha La] [Hb _] l v.
  assert (L : forall f, l tt = Some f -> 0 < a /\ holds f x (b * ln a)).
  { intros f E. unfold l in E. destruct (fst rb) as [fb|]; [|discriminate]. destruct (snd ra tt) as [fa|]; [|discriminate].
    simpl in E. injection E as <-. destruct (La fa eq_refl) as [P G]. split; [exact P|].
    apply (fmul_correct prec K X x HK Hx); [now apply Hb|exact G]. }
  split.
  - intros f E. unfold v in E.
    destruct (bind1 (fst rb) _) as [g|] eqn:B.
    + injection E as <-. destruct (fst rb) as [fb|]; [|discriminate]. simpl in B.
      destruct (rational fb) as [q|] eqn:Q; [|discriminate]. destruct (fst ra) as [fa|]; [|discriminate]. simpl in B.
      rewrite (rational_correct fb q b Q (Hb fb eq_refl)). apply (fpow_correct fa q g a B). now apply Ha.
    + destruct (l tt) as [h|] eqn:E2; [|discriminate]. simpl in E. injection E as <-.
      destruct (L h eq_refl) as [P G]. split; [exact P|]. unfold Rpower. now apply fexp_correct.
  - intros f E. destruct (L f E) as [P G]. split; [exact P|]. split; [apply Rpower_pos|].
    unfold Rpower. rewrite ln_exp. exact G.
Qed.

Theorem analyse_sound e : sound (analyse e) (eval e x).
Proof.
  induction e; cbn [analyse eval].
  - apply plain_sound. intros f H. exact (level_correct 0 f H).
  - apply plain_sound. intros f H. injection H as <-. apply constant_correct. simpl. unfold Q2R. simpl. lra.
  - apply plain_sound. intros f H. injection H as <-. apply constant_correct. cbn [holds_c]. now rewrite Q2R_red.
  - apply plain_sound. intros f H. injection H as <-. apply constant_correct. apply ipi_correct.
  - apply plain_sound. intros f H. destruct IHe1 as [A _], IHe2 as [B _].
    destruct (fst (analyse e1)); [|discriminate]. destruct (fst (analyse e2)); [|discriminate].
    simpl in H. injection H as <-. apply tidy_correct, fadd_correct; auto.
  - apply plain_sound. intros f H. destruct IHe1 as [A _], IHe2 as [B _].
    destruct (fst (analyse e1)); [|discriminate]. destruct (fst (analyse e2)); [|discriminate].
    simpl in H. injection H as <-. apply tidy_correct. apply fadd_correct; [auto|]. apply fneg_correct. auto.
  - destruct IHe1 as [A LA], IHe2 as [B LB].
    assert (V : forall f, bind2 (fst (analyse e1)) (fst (analyse e2)) (fun f g => Some (fmul f g)) = Some f ->
                holds f x (eval e1 x * eval e2 x)).
    { intros f H. destruct (fst (analyse e1)); [|discriminate]. destruct (fst (analyse e2)); [|discriminate].
      simpl in H. injection H as <-. apply (fmul_correct prec K X x HK Hx); auto. }
    split; [exact V|]. intros f. simpl. apply orelse_sound; [|exact V]. intros g H.
    destruct (snd (analyse e1) tt); [|discriminate]. destruct (snd (analyse e2) tt); [|discriminate].
    simpl in H. injection H as <-. destruct (LA _ eq_refl) as [P1 G1], (LB _ eq_refl) as [P2 G2].
    split; [now apply Rmult_lt_0_compat|]. rewrite ln_mult by assumption. now apply tidy_correct, fadd_correct.
  - destruct IHe1 as [A LA], IHe2 as [B LB].
    assert (V : forall f, bind2 (fst (analyse e1)) (fst (analyse e2))
                  (fun f g => bind1 (finv g) (fun h => Some (fmul f h))) = Some f -> holds f x (eval e1 x / eval e2 x)).
    { intros f H. destruct (fst (analyse e1)) as [fa|]; [|discriminate]. destruct (fst (analyse e2)) as [fb|]; [|discriminate].
      simpl in H. destruct (finv fb) as [h|] eqn:E; [|discriminate]. simpl in H. injection H as <-.
      destruct (finv_correct fb h _ E (B fb eq_refl)) as [_ G]. apply (fmul_correct prec K X x HK Hx); auto. }
    split; [exact V|]. intros f. simpl. apply orelse_sound; [|exact V]. intros g H.
    destruct (snd (analyse e1) tt); [|discriminate]. destruct (snd (analyse e2) tt); [|discriminate].
    simpl in H. injection H as <-. destruct (LA _ eq_refl) as [P1 G1], (LB _ eq_refl) as [P2 G2].
    split; [now apply Rdiv_lt_0_compat|]. unfold Rdiv. rewrite ln_mult, ln_Rinv by (try assumption; now apply Rinv_0_lt_compat).
    apply tidy_correct, fadd_correct; [assumption|now apply fneg_correct].
  - apply plain_sound. intros f H. destruct IHe as [A _]. destruct (fst (analyse e)); [|discriminate].
    simpl in H. injection H as <-. apply fneg_correct. auto.
  - destruct IHe as [A LA].
    assert (V : forall f, bind1 (fst (analyse e)) finv = Some f -> holds f x (/ eval e x)).
    { intros f H. destruct (fst (analyse e)) as [fa|]; [|discriminate]. simpl in H.
      destruct (finv_correct fa f _ H (A fa eq_refl)) as [_ G]. exact G. }
    split; [exact V|]. intros f. simpl. apply orelse_sound; [|exact V]. intros g H.
    destruct (snd (analyse e) tt); [|discriminate]. simpl in H. injection H as <-. destruct (LA _ eq_refl) as [P G].
    split; [now apply Rinv_0_lt_compat|]. rewrite ln_Rinv by exact P. now apply fneg_correct.
  - destruct IHe as [A _]. split; simpl.
    + intros f H. destruct (fst (analyse e)); [|discriminate]. simpl in H. injection H as <-. apply fexp_correct. auto.
    + intros f H. split; [apply exp_pos|]. rewrite ln_exp. auto.
  - apply plain_sound. intros f H. destruct IHe as [_ LA]. now apply LA.
  - destruct IHe as [A LA]. assert (Q : Q2R (1 # 2) = / 2) by (unfold Q2R; simpl; lra). split; simpl.
    + intros f H. destruct (fst (analyse e)) as [fa|]; [|discriminate]. simpl in H.
      destruct (fpow_correct fa _ f _ H (A fa eq_refl)) as [P G]. rewrite Q, Rpower_sqrt in G by exact P. exact G.
    + intros f H. destruct (snd (analyse e) tt) as [la|]; [|discriminate]. simpl in H. injection H as <-.
      destruct (LA la eq_refl) as [P G]. split; [now apply sqrt_lt_R0|].
      rewrite <- Rpower_sqrt by exact P. unfold Rpower. rewrite ln_exp, <- Q. now apply fscale_exact.
  - destruct IHe as [A LA].
    assert (Q : Q2R (inject_Z (Z.of_nat n)) = INR n) by (unfold Q2R; simpl; rewrite INR_IZR_INZ; field).
    assert (V : forall f, bind1 (fst (analyse e)) (fun f => if Nat.leb n 8 then Some (fpow_nat f n)
                  else fpow f (inject_Z (Z.of_nat n))) = Some f -> holds f x (eval e x ^ n)).
    { intros f H. destruct (fst (analyse e)) as [fa|]; [|discriminate]. simpl in H. destruct (Nat.leb n 8).
      - injection H as <-. apply fpow_nat_correct. auto.
      - destruct (fpow_correct fa _ f _ H (A fa eq_refl)) as [P G]. rewrite Q, Rpower_pow in G by exact P. exact G. }
    split; [exact V|]. intros f. simpl. apply orelse_sound; [|exact V]. intros g H.
    destruct (snd (analyse e) tt) as [la|]; [|discriminate]. simpl in H. injection H as <-.
    destruct (LA la eq_refl) as [P G]. split; [now apply pow_lt|]. rewrite <- Rpower_pow by exact P.
    unfold Rpower. rewrite ln_exp, <- Q. now apply fscale_exact.
  - destruct (power_sound _ _ _ _ IHe1 IHe2) as [V L]. split; [intros f H; now apply V|].
    intros f H. destruct (L f H) as [_ [P G]]. now split.
  - destruct (power_sound _ _ _ _ IHe1 IHe2) as [V L]. split.
    + intros f H. destruct (V f H) as [P G]. now rewrite power_pos.
    + intros f H. destruct (L f H) as [Pa [P G]]. rewrite power_pos by exact Pa. now split.
  - apply plain_sound. intros f H. injection H as <-. destruct IHe as [A _].
    apply (wave_correct (icos prec) cos (fun _ => one) (fun _ => 1)); [intros; now apply icos_correct|intros; apply COS_bound| | |exact A].
    + intros. apply one_correct.
    + exact taylor_cos.
  - apply plain_sound. intros f H. injection H as <-. destruct IHe as [A _].
    apply (wave_correct (isin prec) sin (fun g => g) (fun d => d)); [intros; now apply isin_correct|intros; apply SIN_bound| | |exact A].
    + auto.
    + exact taylor_sin.
  - apply plain_sound. intros f H. destruct IHe as [A _]. destruct (fst (analyse e)); [|discriminate].
    simpl in H. injection H as <-. apply fabs_correct. auto.
  - apply plain_sound. intros f H. destruct IHe as [A _]. destruct (fst (analyse e)); [|discriminate].
    simpl in H. injection H as <-. set (y := eval e x) in *.
    replace (floor y) with (y + (floor y - y)) by ring. apply fadd_correct; [auto|].
    exists (floor y - y), 0. split; [|split; [reflexivity|rewrite meval_nil; ring]].
    apply ifrom0_correct with (-1); [apply iZ_correct|]. right. unfold floor. destruct (base_Int_part y). lra.
  - apply plain_sound. intros f H. destruct IHe1 as [A _], IHe2 as [B _].
    destruct (fst (analyse e1)) as [fa|]; [|discriminate]. destruct (fst (analyse e2)) as [fb|]; [|discriminate].
    simpl in H. specialize (A fa eq_refl). specialize (B fb eq_refl).
    pose proof (fadd_correct prec fa (fneg fb) x _ _ A (fneg_correct prec fb x _ B)) as D.
    destruct (fnonpos prec K (fadd fa (fneg fb))) eqn:S1.
    + pose proof (fnonpos_correct prec K X x HK Hx _ _ S1 D). injection H as <-. rewrite Rmin_left by lra. exact A.
    + destruct (fnonneg prec K (fadd fa (fneg fb))) eqn:S2; [|discriminate].
      pose proof (fnonneg_correct prec K X x HK Hx _ _ S2 D). injection H as <-. rewrite Rmin_right by lra. exact B.
  - apply plain_sound. intros f H. destruct IHe1 as [A _], IHe2 as [B _].
    destruct (fst (analyse e1)) as [fa|]; [|discriminate]. destruct (fst (analyse e2)) as [fb|]; [|discriminate].
    simpl in H. specialize (A fa eq_refl). specialize (B fb eq_refl).
    pose proof (fadd_correct prec fa (fneg fb) x _ _ A (fneg_correct prec fb x _ B)) as D.
    destruct (fnonpos prec K (fadd fa (fneg fb))) eqn:S1.
    + pose proof (fnonpos_correct prec K X x HK Hx _ _ S1 D). injection H as <-. rewrite Rmax_right by lra. exact B.
    + destruct (fnonneg prec K (fadd fa (fneg fb))) eqn:S2; [|discriminate].
      pose proof (fnonneg_correct prec K X x HK Hx _ _ S2 D). injection H as <-. rewrite Rmax_left by lra. exact A.
  - assert (N : sound (None, fun _ => None) (if Rlt_dec (eval e1 x) (eval e2 x) then eval e3 x else eval e4 x))
      by (split; discriminate).
    destruct IHe1 as [A _], IHe2 as [B _].
    destruct (fst (analyse e1)) as [fa|]; [|exact N]. destruct (fst (analyse e2)) as [fb|]; [|exact N]. simpl.
    specialize (A fa eq_refl). specialize (B fb eq_refl).
    pose proof (fadd_correct prec fa (fneg fb) x _ _ A (fneg_correct prec fb x _ B)) as D.
    destruct (fneg_strict prec K (fadd fa (fneg fb))) eqn:S1.
    + pose proof (fneg_strict_correct prec K X x HK Hx _ _ S1 D). destruct (Rlt_dec _ _); [assumption|exfalso; lra].
    + destruct (fnonneg prec K (fadd fa (fneg fb))) eqn:S2; [|exact N].
      pose proof (fnonneg_correct prec K X x HK Hx _ _ S2 D). destruct (Rlt_dec _ _); [exfalso; lra|assumption].
  - assert (N : sound (None, fun _ => None) (if Rle_dec (eval e1 x) (eval e2 x) then eval e3 x else eval e4 x))
      by (split; discriminate).
    destruct IHe1 as [A _], IHe2 as [B _].
    destruct (fst (analyse e1)) as [fa|]; [|exact N]. destruct (fst (analyse e2)) as [fb|]; [|exact N]. simpl.
    specialize (A fa eq_refl). specialize (B fb eq_refl).
    pose proof (fadd_correct prec fa (fneg fb) x _ _ A (fneg_correct prec fb x _ B)) as D.
    destruct (fnonpos prec K (fadd fa (fneg fb))) eqn:S1.
    + pose proof (fnonpos_correct prec K X x HK Hx _ _ S1 D). destruct (Rle_dec _ _); [assumption|exfalso; lra].
    + destruct (fpos prec K (fadd fa (fneg fb))) eqn:S2; [|exact N].
      pose proof (fpos_correct prec K X x HK Hx _ _ S2 D). destruct (Rle_dec _ _); [exfalso; lra|assumption].
Qed.
End Walk.