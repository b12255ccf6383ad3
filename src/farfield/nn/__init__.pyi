from .attention.api import attention as attention
from .attention.reference import reference as reference
from .bias import Bias as Bias
from .bias import T5Bias as T5Bias
from .bias import bias_of as bias_of
from .decoder.positions import Rope as Rope
from .decoder.positions import Sinusoidal as Sinusoidal
from .denormals import flush_denormals as flush_denormals
