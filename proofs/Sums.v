(* Heads, tails and totals of a series of weights, and comparison by telescoping.

   b t is the weight at distance t. A window of j tokens holds the distances t < j, so
     head b j  = b 0 + ... + b (j-1)     the weight inside the window,
     tail b j  = b j + b (j+1) + ...     the weight outside,
     total b   = the sum of all weights.
   If a n <= F n - F (n+1), the partial sums of a telescope: this replaces the integral test everywhere. *)
From Coq Require Import Reals Psatz Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

Fixpoint head (b : nat -> R) (j : nat) : R :=
  match j with O => 0 | S i => head b i + b i end.

Definition tail (b : nat -> R) (j : nat) : R := Series (fun n => b (j + n)%nat).

Definition total (b : nat -> R) : R := Series b.

Lemma head_sum_n b n : head b (S n) = sum_n b n.
Proof.
  induction n as [|n IH].
  - rewrite sum_O. simpl. ring.
  - rewrite sum_Sn. change (head b (S n) + b (S n) = sum_n b n + b (S n)). now rewrite IH.
Qed.

Lemma head_ext a b j : (forall t, (t < j)%nat -> a t = b t) -> head a j = head b j.
Proof.
  intros H. induction j as [|j IH]; simpl; [reflexivity|].
  rewrite IH by (intros; apply H; lia). now rewrite H by lia.
Qed.

Lemma head_scal k b j : head (fun t => k * b t) j = k * head b j.
Proof. induction j as [|j IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma head_plus a b j : head (fun t => a t + b t) j = head a j + head b j.
Proof. induction j as [|j IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma head_const k j : head (fun _ => k) j = INR j * k.
Proof. induction j as [|j IH]; [simpl; ring|]. rewrite S_INR. simpl. rewrite IH. ring. Qed.

Lemma head_le a b j : (forall t, (t < j)%nat -> a t <= b t) -> head a j <= head b j.
Proof.
  intros H. induction j as [|j IH]; simpl; [lra|].
  specialize (IH ltac:(intros; apply H; lia)). specialize (H j ltac:(lia)). lra.
Qed.

Lemma head_nonneg b j : (forall t, 0 <= b t) -> 0 <= head b j.
Proof. intros H. induction j as [|j IH]; simpl; [lra|]. specialize (H j). lra. Qed.

Lemma head_mono b i j : (forall t, 0 <= b t) -> (i <= j)%nat -> head b i <= head b j.
Proof.
  intros H Hij. induction Hij as [|j Hij IH]; [lra|]. simpl. specialize (H j). lra.
Qed.

(* the weight inside a window of at least one token *)
Lemma head_pos b j : (forall t, 0 <= b t) -> 0 < b 0%nat -> (1 <= j)%nat -> 0 < head b j.
Proof.
  intros H H0 Hj. apply Rlt_le_trans with (head b 1); [simpl; lra|]. now apply head_mono.
Qed.

Lemma head_split b i m : head b (i + m) = head b i + head (fun t => b (i + t)%nat) m.
Proof.
  induction m as [|m IH]; [simpl; rewrite Nat.add_0_r; ring|].
  rewrite Nat.add_succ_r. simpl. rewrite IH. ring.
Qed.

Lemma head_rise_le a b i j : (i <= j)%nat -> (forall t, (i <= t < j)%nat -> a t <= b t) ->
  head a j - head a i <= head b j - head b i.
Proof.
  intros Hij. induction Hij as [|j Hij IH]; intros H; [lra|].
  simpl. specialize (IH ltac:(intros; apply H; lia)). specialize (H j ltac:(lia)). lra.
Qed.

(* ------------------------------------------------------------------------------------------- where a series begins *)
Lemma ex_series_from (a : nat -> R) (X : nat) : ex_series (fun n => a (X + n)%nat) <-> ex_series a.
Proof. split; intros H; now apply (ex_series_incr_n a X). Qed.

Lemma ex_series_eventually (a b : nat -> R) (X : nat) :
  (forall t, (X <= t)%nat -> Rabs (a t) <= b t) -> ex_series b -> ex_series a.
Proof.
  intros H Hb. apply (ex_series_from a X).
  apply (ex_series_le (fun n => a (X + n)%nat) (fun n => b (X + n)%nat)).
  - intros n. apply H. lia.
  - now apply ex_series_from.
Qed.

Lemma ex_series_below (a b : nat -> R) (X : nat) :
  (forall t, (X <= t)%nat -> 0 <= a t <= b t) -> ex_series b -> ex_series a.
Proof.
  intros H. apply ex_series_eventually with X. intros t Ht. specialize (H t Ht). rewrite Rabs_right; lra.
Qed.

Lemma diverges_above (a b : nat -> R) (X : nat) :
  (forall t, (X <= t)%nat -> 0 <= a t <= b t) -> ~ ex_series a -> ~ ex_series b.
Proof. intros H Ha Hb. apply Ha. now apply (ex_series_below a b X). Qed.

Lemma ex_series_finite (a : nat -> R) (X : nat) : (forall t, (X <= t)%nat -> a t = 0) -> ex_series a.
Proof.
  intros H. apply (ex_series_below a (fun _ => 0) X).
  - intros t Ht. rewrite H by exact Ht. lra.
  - exists 0. apply (filterlim_ext (fun _ => 0)); [|apply filterlim_const].
    intros n. rewrite sum_n_const. ring.
Qed.

(* terms that stay above a positive constant *)
Lemma diverges_constant (b : nat -> R) (c : R) (X : nat) :
  0 < c -> (forall t, (X <= t)%nat -> c <= b t) -> ~ ex_series b.
Proof.
  intros Hc H K. apply ex_series_lim_0 in K.
  assert (L : Rbar_le c 0).
  { apply (is_lim_seq_le_loc (fun _ => c) b c 0); [|apply is_lim_seq_const|exact K]. exists X. exact H. }
  simpl in L. lra.
Qed.

(* --------------------------------------------------------------------------------------------------- telescoping *)
Lemma head_le_telescope (a F : nat -> R) :
  (forall n, a n <= F n - F (S n)) -> forall n, head a n <= F 0%nat - F n.
Proof. intros H n; induction n as [|n IH]; simpl; [lra|]. specialize (H n). lra. Qed.

Lemma head_ge_telescope (a F : nat -> R) :
  (forall n, F n - F (S n) <= a n) -> forall n, F 0%nat - F n <= head a n.
Proof. intros H n; induction n as [|n IH]; simpl; [lra|]. specialize (H n). lra. Qed.

Lemma is_lim_head b : ex_series b -> is_lim_seq (head b) (total b).
Proof.
  intros H. apply is_lim_seq_incr_1. apply is_lim_seq_ext with (sum_n b).
  - intros n. symmetry. apply head_sum_n.
  - exact (Series_correct b H).
Qed.

Lemma ex_series_bounded (a : nat -> R) (K : R) :
  (forall n, 0 <= a n) -> (forall n, head a n <= K) -> ex_series a.
Proof.
  intros Ha HK. destruct (ex_finite_lim_seq_incr (sum_n a) K) as [l Hl].
  - intros n. rewrite <- !head_sum_n. simpl. specialize (Ha (S n)). lra.
  - intros n. rewrite <- head_sum_n. apply HK.
  - exists l. exact Hl.
Qed.

Lemma ex_series_telescope (a F : nat -> R) :
  (forall n, 0 <= a n) -> (forall n, 0 <= F n) -> (forall n, a n <= F n - F (S n)) -> ex_series a.
Proof.
  intros Ha HF H. apply (ex_series_bounded a (F 0%nat) Ha).
  intros n. pose proof (head_le_telescope a F H n). specialize (HF n). lra.
Qed.

Lemma diverges_telescope (a F : nat -> R) :
  is_lim_seq F p_infty -> (forall n, F (S n) - F n <= a n) -> ~ ex_series a.
Proof.
  intros HF H Hl. apply is_lim_head in Hl.
  assert (Hd : is_lim_seq (fun n => F n - F 0%nat) p_infty).
  { apply (is_lim_seq_minus _ _ p_infty (F 0%nat)); [exact HF|apply is_lim_seq_const|reflexivity]. }
  assert (Hp : is_lim_seq (head a) p_infty).
  { apply is_lim_seq_le_p_loc with (2 := Hd). exists 0%nat. intros n _.
    pose proof (head_ge_telescope a (fun n => - F n)) as G. simpl in G.
    specialize (G ltac:(intros m; specialize (H m); lra) n). lra. }
  apply is_lim_seq_unique in Hl. apply is_lim_seq_unique in Hp. rewrite Hl in Hp. discriminate.
Qed.

(* a telescope on one side bounds the sum on that side *)
Lemma series_le_telescope (a F : nat -> R) :
  (forall n, 0 <= a n) -> (forall n, 0 <= F n) -> (forall n, a n <= F n - F (S n)) -> Series a <= F 0%nat.
Proof.
  intros Ha HF H. pose proof (is_lim_head a (ex_series_telescope a F Ha HF H)) as L.
  assert (Rbar_le (total a) (F 0%nat)) as K; [|exact K].
  apply (is_lim_seq_le (head a) (fun _ => F 0%nat)); [|exact L|apply is_lim_seq_const].
  intros n. pose proof (head_le_telescope a F H n). specialize (HF n). lra.
Qed.

Lemma series_ge_telescope (a F : nat -> R) :
  ex_series a -> is_lim_seq F 0 -> (forall n, F n - F (S n) <= a n) -> F 0%nat <= Series a.
Proof.
  intros E HF H. assert (Rbar_le (F 0%nat) (total a)) as K; [|exact K].
  apply (is_lim_seq_le (fun n => F 0%nat - F n) (head a)).
  - intros n. now apply head_ge_telescope.
  - replace (Finite (F 0%nat)) with (Finite (F 0%nat - 0)) by (f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const|exact HF].
  - now apply is_lim_head.
Qed.

(* ------------------------------------------------------------------------------------------------- head and tail *)
Lemma head_tail b j : ex_series b -> total b = head b j + tail b j.
Proof.
  intros H. destruct j as [|j].
  - symmetry. apply Rplus_0_l.
  - unfold total, tail. rewrite (Series_incr_n b (S j)) by (try lia; exact H).
    rewrite head_sum_n. simpl pred. now rewrite sum_n_Reals.
Qed.

Lemma head_le_total b j : (forall t, 0 <= b t) -> ex_series b -> head b j <= total b.
Proof.
  intros Hb H. assert (Rbar_le (head b j) (total b)) as K; [|exact K].
  apply (is_lim_seq_le_loc (fun _ => head b j) (head b)).
  - exists j. intros n Hn. now apply head_mono.
  - apply is_lim_seq_const.
  - now apply is_lim_head.
Qed.

Lemma tail_nonneg b j : (forall t, 0 <= b t) -> ex_series b -> 0 <= tail b j.
Proof. intros Hb H. pose proof (head_le_total b j Hb H). rewrite (head_tail b j H) in H0. lra. Qed.

Lemma tail_mono b i j : (forall t, 0 <= b t) -> ex_series b -> (i <= j)%nat -> tail b j <= tail b i.
Proof.
  intros Hb H Hij. pose proof (head_tail b i H). pose proof (head_tail b j H).
  pose proof (head_mono b i j Hb Hij). lra.
Qed.

Lemma tail_step b j : ex_series b -> tail b j = b j + tail b (S j).
Proof.
  intros H. pose proof (head_tail b j H). pose proof (head_tail b (S j) H) as E. simpl in E. lra.
Qed.

Lemma total_pos b : (forall t, 0 <= b t) -> 0 < b 0%nat -> ex_series b -> 0 < total b.
Proof.
  intros Hb H0 H. apply Rlt_le_trans with (head b 1); [now apply head_pos|now apply head_le_total].
Qed.

Lemma is_lim_tail b : ex_series b -> is_lim_seq (tail b) 0.
Proof.
  intros H. apply is_lim_seq_ext with (fun n => total b - head b n).
  - intros n. rewrite (head_tail b n H). ring.
  - replace (Finite 0) with (Finite (total b - total b)) by (f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const|now apply is_lim_head].
Qed.

Lemma tail_scal k b j : tail (fun t => k * b t) j = k * tail b j.
Proof. unfold tail. apply (Series_scal_l k (fun n => b (j + n)%nat)). Qed.

Lemma total_scal k b : total (fun t => k * b t) = k * total b.
Proof. apply Series_scal_l. Qed.

(* a series of weights that does not converge grows beyond every bound *)
Lemma head_unbounded b : (forall t, 0 <= b t) -> ~ ex_series b -> forall K, exists n, K < head b n.
Proof.
  intros Hb Hd K. destruct (Classical_Prop.classic (exists n, K < head b n)) as [H|H]; [exact H|exfalso].
  apply Hd. apply (ex_series_bounded b K Hb). intros n.
  destruct (Rle_or_lt (head b n) K) as [h|h]; [exact h|]. exfalso. apply H. now exists n.
Qed.

(* a telescope that tends to 0 bounds the sum from above as well *)
Lemma series_le_telescope_lim (a F : nat -> R) :
  ex_series a -> is_lim_seq F 0 -> (forall n, a n <= F n - F (S n)) -> Series a <= F 0%nat.
Proof.
  intros E HF H. assert (Rbar_le (total a) (F 0%nat)) as K; [|exact K].
  apply (is_lim_seq_le (head a) (fun n => F 0%nat - F n)).
  - intros n. now apply head_le_telescope.
  - now apply is_lim_head.
  - replace (Finite (F 0%nat)) with (Finite (F 0%nat - 0)) by (f_equal; ring).
    apply is_lim_seq_minus'; [apply is_lim_seq_const|exact HF].
Qed.
