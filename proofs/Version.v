(* The version of this library. A file that Farfield writes names the version it was written for; a library of
   another version refuses it. *)
From Coq Require Import String.

Definition version : string := "1.1".
