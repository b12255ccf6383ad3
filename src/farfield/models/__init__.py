"""What is known of the models that people run: configurations here, without torch; networks in networks/."""
